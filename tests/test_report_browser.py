"""The report in Chromium: the slider, the keyboard, both themes, a narrow window, paper."""

import base64
import json
import math
import os
import random
import re
import shutil
import time
from itertools import combinations

import numpy as np
import pytest

from report_documents import HOSTILE, KINDS, document, fitted, rows
from sparsestep import SparseStepCV
from sparsestep.report import write_report
from sparsestep.report.numbers import number

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def path_of(program):
    """Where a program is; without it skip, but not where all tests must run."""
    found = shutil.which(program)
    if found is None:
        stop = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        stop(f"needs {program}, which is not installed")
    return found


@pytest.fixture(scope="module")
def browser():
    chromium, chromedriver = path_of("chromium"), path_of("chromedriver")
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    from selenium.webdriver.chrome.service import Service

    with pytest.MonkeyPatch.context() as patch:
        # Selenium must use the driver that is given, and ask nobody for another.
        patch.setenv("SE_OFFLINE", "true")
        patch.setenv("SE_AVOID_STATS", "true")
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for argument in ("no-sandbox", "headless=new", "disable-gpu", "disable-dev-shm-usage"):
            options.add_argument(f"--{argument}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        options.set_capability("unhandledPromptBehavior", "ignore")
        driver = webdriver.Chrome(options=options, service=Service(chromedriver))
        try:
            yield driver
        finally:
            driver.quit()


def resize(browser, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@pytest.fixture
def visit(browser, tmp_path):
    """Write the report on a document, or a kind of them, and open it."""

    def visit(shown, *, width=1280, theme="light", script=True, media=""):
        file = tmp_path / "report.html"
        write_report(document(shown) if isinstance(shown, str) else shown, file)
        resize(browser, width)
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"media": media, "features": [{"name": "prefers-color-scheme", "value": theme}]},
        )
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not script})
        for log in ("browser", "performance"):
            browser.get_log(log)
        browser.get(file.as_uri())
        # Disabled is only the page's own script, not those of the tests.
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        return browser

    return visit


def find(browser, selector):
    return browser.find_element("css selector", selector)


def find_all(browser, selector):
    return browser.find_elements("css selector", selector)


def texts(browser, selector):
    """Texts as they are in the document, seen or not."""
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector
    )


def press(browser, *keys):
    from selenium.webdriver.common.keys import Keys

    for key in keys:
        browser.switch_to.active_element.send_keys(getattr(Keys, key))


def slide(browser, *keys, slider="input[type=range]"):
    """Press keys on the slider."""
    browser.execute_script("document.querySelector(arguments[0]).focus()", slider)
    press(browser, *keys)


def wait_until(met):
    """What a condition gives once it is met."""
    deadline = time.monotonic() + 10
    while not (found := met()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def spoken(browser):
    """What a screen reader is told once the slider rests."""
    return wait_until(lambda: texts(browser, "[data-live]")[0])


def background(browser):
    return browser.execute_script("return getComputedStyle(document.body).backgroundColor")


def state(browser):
    """All that the slider changes."""
    return {
        "alpha": texts(browser, "[data-key=alpha]"),
        "count": texts(browser, "dd[data-key=count]")[0],
        "value": texts(browser, "[data-key=value]")[0],
        "r2": texts(browser, "[data-key=r2]")[0],
        "table": [
            tuple(texts(browser, f".side tbody tr:nth-child({i + 1}) > *"))
            for i in range(len(find_all(browser, ".side tbody tr")))
        ],
        "cursors": [e.get_attribute("x1") for e in find_all(browser, ".cursor")],
        "dots": len(find_all(browser, ".dots circle")),
        "said": find(browser, "input[type=range]").get_attribute("aria-valuetext"),
    }


# --- loading --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_loads_without_errors_and_network_and_never_scrolls_sideways(visit, kind):
    browser = visit(kind)
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requested = [
        event["params"]["request"]["url"].split(":")[0]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert set(requested) <= {"file", "data"} and requested.count("file") == 1
    for width in (360, 700, 1280):
        resize(browser, width)
        inside, scrolled, seen = browser.execute_script(
            "const e = document.documentElement;return [innerWidth, e.scrollWidth, e.clientWidth]"
        )
        assert inside == width
        assert scrolled <= seen


@pytest.mark.parametrize(
    ("script", "logged"),
    [
        ("setTimeout(() => { throw new Error('seen'); })", "seen"),
        (
            "document.body.append(Object.assign(new Image(), {src: 'http://a.invalid'}))",
            "Content Security Policy",
        ),
    ],
    ids=["error", "request"],
)
def test_the_log_would_show_an_error_and_a_request_that_the_policy_stops(visit, script, logged):
    browser = visit("by 1se")
    browser.execute_script(script)
    time.sleep(0.2)
    assert any(logged in entry["message"] for entry in browser.get_log("browser"))


@pytest.mark.parametrize("width", [700, 1000, 1280, 1600])
def test_the_picture_of_intervals_is_in_sight(visit, width):
    browser = visit("of wide rows", width=width)
    hidden, room = browser.execute_script(
        "const t = document.querySelector('table.kept'), s = t.parentElement;"
        "const cell = t.querySelector('tbody td.picture');"
        "return [s.scrollWidth - s.clientWidth, cell.getBoundingClientRect().width]"
    )
    assert hidden == 0 and room >= 100


def test_hostile_names_stay_text(visit):
    from selenium.common.exceptions import NoAlertPresentException

    browser = visit("with hostile names")
    slide(browser, "END", "HOME", "END")
    spoken(browser)
    with pytest.raises(NoAlertPresentException):
        _ = browser.switch_to.alert
    assert len(find_all(browser, "script")) == 2
    assert not find_all(browser, "img, [onload], [onerror]")
    for names in (".side tbody .name", ".kept tbody .name", ".lines path title"):
        assert sorted(texts(browser, names)) == sorted(HOSTILE)
    assert browser.get_log("browser") == []


# --- the slider -----------------------------------------------------------------------------------


def test_the_slider_moves_table_picture_and_text_by_keyboard(visit):
    made = document("by 1se")
    target, names = made["targets"][0], made["question"]["features"]
    path, chosen = target["path"], {names[j] for j in target["kept"]}
    logs = np.log(path["alphas"])
    browser = visit(made)
    assert texts(browser, "[data-live]") == [""]

    def assert_shows(i):
        now, alpha = state(browser), number(path["alphas"][i])
        models = zip(path["kept"][i], path["coefs"][i], strict=True)
        coefs = {names[j]: number(float(f"{coef:.6g}")) for j, coef in models}
        notes = dict.fromkeys(chosen, "left") | dict.fromkeys(coefs, "entered")
        notes |= dict.fromkeys(chosen & {*coefs}, "")
        assert {row[0]: row[3] for row in now["table"]} == notes
        assert {row[0]: row[1] for row in now["table"] if row[3] != "left"} == coefs
        assert now["alpha"] == [alpha] * 2 and now["count"] == str(len(coefs))
        assert now["said"] == f"alpha {alpha}, {len(coefs)} variable" + "s" * (len(coefs) != 1)
        assert now["dots"] == len(coefs)
        place = 100 * (logs[0] - logs[i]) / (logs[0] - logs[-1])
        assert [float(x[:-1]) for x in now["cursors"]] == pytest.approx([place] * 2, abs=1e-3)
        thumb, line = browser.execute_script(
            "const s = document.querySelector('input[type=range]'), b = s.getBoundingClientRect();"
            "const x = b.left + 10 + (b.width - 20) * s.value / s.max;"
            "return [x, document.querySelector('.cursor').getBoundingClientRect().left]"
        )
        assert thumb == pytest.approx(line, abs=1.5)
        return now

    start = assert_shows(target["index"])
    slide(browser, "END")
    end = assert_shows(-1)
    assert end["r2"] != start["r2"] and end["value"] != start["value"]
    # A screen reader hears where the slider rests.
    said = spoken(browser)
    assert said.startswith(f"alpha {end['alpha'][0]}: 8 var")
    assert "CV error" in said and "entered: " in said
    slide(browser, "HOME")
    assert_shows(0)
    assert chosen - {names[j] for j in path["kept"][0]} and find_all(browser, ".side tr.gone")
    press(browser, "ARROW_RIGHT")
    assert_shows(1)
    press(browser, "TAB")
    find(browser, "[data-go]").click()
    assert state(browser) == start
    for i in range(0, len(logs), 10):
        browser.execute_script(
            "const s = document.querySelector('input[type=range]'); s.value = arguments[0];"
            "s.dispatchEvent(new Event('input'))",
            i,
        )
        assert_shows(i)


def test_without_a_script_the_page_is_whole_and_says_what_the_script_writes(visit):
    browser = visit("by 1se", script=False)
    assert not find(browser, "input[type=range]").is_displayed()
    assert not find(browser, "#theme").is_displayed()
    assert find(browser, ".kept").is_displayed() and find(browser, ".plot-path").is_displayed()
    assert len(find_all(browser, ".side tbody tr")) == 3
    selectors = ("[data-key]", ".side tbody th", ".side tbody .num")
    still = [texts(browser, selector) for selector in selectors]
    browser = visit("by 1se")
    assert [texts(browser, selector) for selector in selectors] == still


def test_a_click_on_the_picture_moves_the_slider(visit):
    from selenium.webdriver.common.action_chains import ActionChains

    browser = visit("by 1se")
    plot = find(browser, ".plot-path")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    for share in (0.25, 0.8):
        from_middle = round((share - 0.5) * plot.size["width"])
        chain = ActionChains(browser).move_to_element_with_offset(plot, from_middle, 0)
        chain.click().perform()
        assert float(state(browser)["cursors"][0][:-1]) == pytest.approx(100 * share, abs=1.5)


def test_buttons_lead_to_the_choices_of_the_rules(visit):
    cv = document("by paired")["targets"][0]["cv"]
    browser = visit("by paired")
    for button, rule in zip(find_all(browser, "[data-go]"), ("paired", "min", "1se"), strict=True):
        button.click()
        assert state(browser)["alpha"] == [number(cv[f"alpha_{rule}"])] * 2


def test_the_slider_of_an_average_starts_where_most_of_the_weight_is(visit):
    target = document("by average")["targets"][0]
    browser = visit("by average")
    assert len(state(browser)["table"]) == len(target["path"]["kept"][target["index"]])
    slide(browser, "END")
    find(browser, "[data-go]").click()
    assert spoken(browser).startswith(f"alpha {number(target['cv']['alpha_min'])}: ")
    wait_until(lambda: spoken(browser).endswith("the model of most weight."))


def test_each_target_has_its_own_slider(visit):
    browser = visit("of two targets")
    second = find(browser, "[data-explorer='1'] .side table").text
    slide(browser, "HOME", slider="#slider-0")
    assert find(browser, "[data-explorer='1'] .side table").text == second
    assert find(browser, "#slider-0").get_attribute("value") == "0"


def test_the_script_writes_numbers_as_python_does(visit):
    browser = visit("by 1se")
    source = find(browser, "body > script").get_attribute("textContent")
    parts = [
        re.search(rf"  function {name}\(.*?\n  }}\n", source, re.S)[0]
        for name in ("fixed", "number")
    ]
    constants = "".join(re.findall(r"  const (?:MINUS|SUPER).*\n", source))
    random.seed(4)
    values = [0.0, None, 9.99995, 0.000099995, 1234.5, -2.5, 1e-7, -9999999.5, 0.125]
    values += [
        float(f"{random.choice((-1, 1)) * math.exp(random.uniform(-25, 25)):.6g}")
        for _ in range(500)
    ]
    for digits in (3, 4):
        written = browser.execute_script(
            f"{constants}{''.join(parts)}return arguments[0].map((v) => number(v, arguments[1]))",
            values,
            digits,
        )
        assert written == [number(value, digits) for value in values]


def rows_seen(browser):
    """The variables of the rows of the table that are not hidden."""
    return browser.execute_script(
        "return [...document.querySelectorAll('.kept tbody tr')]"
        ".filter((e) => e.getClientRects().length).map((e) => e.cells[0].textContent)"
    )


def test_long_tables_unfold_and_can_be_searched(visit):
    browser = visit("of many variables")
    kept = document("of many variables")["targets"][0]["kept"]
    assert len(kept) > 30 and len(rows_seen(browser)) == 30
    button = find(browser, "[data-unfold]")
    button.click()
    assert len(rows_seen(browser)) == len(kept)
    assert button.get_attribute("aria-expanded") == "true"
    find(browser, "[data-filter]").send_keys("X007")
    assert rows_seen(browser) == ["x007"]
    find(browser, "[data-find]").send_keys("x00")
    assert all(name.startswith("x00") for name in texts(browser, ".side tbody .name"))
    assert len(texts(browser, ".side tbody .name")) == 10


# --- how it looks ---------------------------------------------------------------------------------

WHITE = "rgb(255, 255, 255)"

CONTRASTS = """
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const linear = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
function background(node) {
  for (; node; node = node.parentElement) {
    const colour = parse(getComputedStyle(node).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
}
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || !node.getClientRects().length) continue;
  if (node.closest("script, title, desc, .skip")) continue;
  const style = getComputedStyle(node);
  const text = parse(node instanceof SVGElement ? style.fill : style.color);
  const pair = [luminance(text), luminance(background(node))].sort((a, b) => b - a);
  found.push([(pair[0] + 0.05) / (pair[1] + 0.05), walker.currentNode.textContent.trim()]);
}
return found;
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["by 1se", "with warnings", "by average"])
def test_every_text_can_be_read(visit, theme, kind):
    browser = visit(kind, theme=theme)
    bright = sum(map(int, re.findall(r"\d+", background(browser)))) > 600
    assert bright == (theme == "light")
    found = browser.execute_script(CONTRASTS)
    assert len(found) > 100
    assert min(found)[0] >= 4.5, min(found)


def test_the_button_turns_the_theme_and_back(visit):
    browser = visit("by 1se", theme="dark")
    dark, button = background(browser), find(browser, "#theme")
    assert button.text == "Light" and dark != WHITE
    button.click()
    assert button.text == "Dark" and background(browser) == WHITE
    assert min(browser.execute_script(CONTRASTS))[0] >= 4.5
    button.click()
    assert background(browser) == dark


def test_labels_of_a_picture_do_not_overlap(visit):
    browser = visit(fitted(SparseStepCV(cv=5, rule="1se"), rows(400, 100, 12)))
    for axis in (".plot-path > text", ".plot-curve > text", ".labels text"):
        boxes = browser.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map((e) => {"
            "const b = e.getBoundingClientRect();"
            "return [b.left, b.right, b.top + 2, b.bottom - 2]})",
            axis,
        )
        assert len(boxes) > 5
        for a, b in combinations(boxes, 2):
            assert a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] or b[3] <= a[2]


def test_the_keyboard_reaches_everything_and_shows_where_it_is(visit):
    browser = visit("by 1se")
    seen = []
    for _ in range(25):
        press(browser, "TAB")
        tag, name, outline = browser.execute_script(
            "const e = document.activeElement;"
            "return [e.tagName, e.type || e.className, getComputedStyle(e).outlineStyle]"
        )
        if tag == "BODY":
            break
        assert outline != "none", (tag, name)
        seen.append((tag, name))
    assert seen[0] == ("A", "skip")
    assert ("INPUT", "range") in seen and ("BUTTON", "button") in seen
    assert seen.count(("DIV", "scroll")) == 2
    # The skip link leads to the answer.
    browser = visit("by 1se")
    press(browser, "TAB", "ENTER")
    assert browser.execute_script("return document.activeElement.id") == "main"


def test_paper_is_white_and_has_no_controls(visit):
    browser = visit("of many variables", theme="dark", media="print")
    assert background(browser) == WHITE
    for selector in ("input[type=range]", "#theme", ".skip", ".cursor", "[data-unfold]"):
        assert not find(browser, selector).is_displayed()
    # What the screen folds, paper shows.
    assert len(rows_seen(browser)) == len(document("of many variables")["targets"][0]["kept"])
    assert min(browser.execute_script(CONTRASTS))[0] >= 4.5
    pdf = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(pdf["data"]).startswith(b"%PDF")
