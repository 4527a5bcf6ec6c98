"""The report in Chromium: the slider, the keyboard, both themes, a narrow window, paper."""

import base64
import json
import math
import os
import random
import re
import shutil
import time

import pytest

import report_documents as documents
from sparsestep.report import write_report
from sparsestep.report.numbers import number

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")


def needed(what, there):
    """Go on if something is there; without it skip, but not where all tests must run."""
    if there:
        return
    message = f"needs {what}, which is not installed"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="module")
def browser():
    needed("Chromium", CHROMIUM)
    needed("chromedriver", DRIVER)
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    from selenium.webdriver.chrome.service import Service

    with pytest.MonkeyPatch.context() as patch:
        # Selenium must use the driver that is given, and ask nobody for another.
        patch.setenv("SE_OFFLINE", "true")
        patch.setenv("SE_AVOID_STATS", "true")
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in ("no-sandbox", "headless=new", "disable-gpu", "disable-dev-shm-usage"):
            options.add_argument(f"--{argument}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        options.set_capability("unhandledPromptBehavior", "ignore")
        driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        try:
            yield driver
        finally:
            driver.quit()


def resize(browser, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@pytest.fixture
def visit(browser, tmp_path):
    """Write the report on a document and open it."""

    def visit(document, *, width=1280, theme="light", script=True, media=""):
        file = tmp_path / "report.html"
        write_report(document, file)
        resize(browser, width)
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"media": media, "features": [{"name": "prefers-color-scheme", "value": theme}]},
        )
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not script})
        for log in ("browser", "performance"):
            browser.get_log(log)
        browser.get(file.as_uri())
        return browser

    yield visit
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


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


def focus(browser, selector):
    browser.execute_script("document.querySelector(arguments[0]).focus()", selector)


def spoken(browser):
    """What a screen reader is told once the slider rests."""
    deadline = time.monotonic() + 10
    while texts(browser, "[data-live]") == [""]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return texts(browser, "[data-live]")[0]


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


@pytest.mark.parametrize("kind", documents.KINDS, ids=lambda kind: kind.__name__)
def test_the_page_loads_without_errors_and_without_the_network(visit, kind):
    browser = visit(kind())
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requested = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert {url.split(":")[0] for url in requested} <= {"file", "data"}
    assert len([url for url in requested if url.startswith("file")]) == 1


def test_the_log_would_show_an_error(visit):
    browser = visit(documents.by_cv())
    browser.execute_script("setTimeout(() => { throw new Error('seen'); })")
    time.sleep(0.2)
    assert any("seen" in entry["message"] for entry in browser.get_log("browser"))


def test_the_policy_stops_the_network(visit):
    browser = visit(documents.by_cv())
    browser.execute_script(
        "document.body.append(Object.assign(new Image(), {src: 'http://a.invalid'}))"
    )
    time.sleep(0.2)
    assert any("Content Security Policy" in e["message"] for e in browser.get_log("browser"))


@pytest.mark.parametrize("width", [700, 1000, 1280, 1600])
def test_the_picture_of_intervals_is_in_sight(visit, width):
    browser = visit(documents.of_wide_rows(), width=width)
    hidden, room = browser.execute_script(
        "const t = document.querySelector('table.kept'), s = t.parentElement;"
        "const cell = t.querySelector('tbody td.picture');"
        "return [s.scrollWidth - s.clientWidth, cell.getBoundingClientRect().width]"
    )
    assert hidden == 0 and room >= 100


def test_hostile_names_stay_text(visit):
    from selenium.common.exceptions import NoAlertPresentException

    browser = visit(documents.with_hostile_names())
    focus(browser, "input[type=range]")
    press(browser, "END", "HOME", "END")
    spoken(browser)
    with pytest.raises(NoAlertPresentException):
        _ = browser.switch_to.alert
    assert len(find_all(browser, "script")) == 2
    assert not find_all(browser, "img, [onload], [onerror]")
    assert sorted(texts(browser, ".side tbody .name")) == sorted(documents.HOSTILE)
    assert sorted(texts(browser, ".kept tbody .name")) == sorted(documents.HOSTILE)
    assert sorted(texts(browser, ".lines path title")) == sorted(documents.HOSTILE)
    assert browser.get_log("browser") == []


# --- the slider -----------------------------------------------------------------------------------


def test_the_slider_moves_table_picture_and_text_by_keyboard(visit):
    document = documents.by_cv()
    target, names = document["targets"][0], document["question"]["features"]
    browser = visit(document)
    start = state(browser)
    assert start["count"] == str(len(target["kept"]))
    focus(browser, "input[type=range]")

    press(browser, "END")
    end = state(browser)
    path = target["path"]
    assert end["count"] == str(path["n_nonzero"][-1])
    assert end["alpha"] == [number(path["alphas"][-1])] * 2
    assert end["cursors"] == ["100%", "100%"] and start["cursors"] != end["cursors"]
    assert end["dots"] == path["n_nonzero"][-1]
    assert end["r2"] != start["r2"] and end["value"] != start["value"]
    shown = {row[0]: row for row in end["table"]}
    assert set(shown) == {names[j] for j in path["kept"][-1]}
    for j, coef in zip(path["kept"][-1], path["coefs"][-1], strict=True):
        assert shown[names[j]][1] == number(float(f"{coef:.6g}"))
        assert shown[names[j]][3] == ("" if j in target["kept"] else "entered")
    assert end["said"] == f"alpha {end['alpha'][0]}, {end['count']} variables"

    press(browser, "HOME")
    home = state(browser)
    assert home["cursors"] == ["0%", "0%"]
    left = [row[0] for row in home["table"] if row[3] == "left"]
    assert set(left) == {names[j] for j in target["kept"]} - {names[j] for j in path["kept"][0]}
    assert left and find_all(browser, ".side tr.gone")

    press(browser, "ARROW_RIGHT")
    assert state(browser)["cursors"] != home["cursors"]
    press(browser, "TAB")
    find(browser, "[data-go]").click()
    assert state(browser) == start


def test_what_the_script_writes_is_what_the_page_said_without_it(visit):
    document = documents.by_cv()
    browser = visit(document, script=False)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    selectors = ("[data-key]", ".side tbody th", ".side tbody .num")
    still = [texts(browser, selector) for selector in selectors]
    browser = visit(document)
    assert [texts(browser, selector) for selector in selectors] == still


def test_variables_come_and_go_as_the_path_says(visit):
    document = documents.by_cv()
    path, names = document["targets"][0]["path"], document["question"]["features"]
    browser = visit(document)
    for i in range(0, len(path["alphas"]), 10):
        browser.execute_script(
            "const s = document.querySelector('input[type=range]'); s.value = arguments[0];"
            "s.dispatchEvent(new Event('input'))",
            i,
        )
        here = [row[0] for row in state(browser)["table"] if row[3] != "left"]
        assert sorted(here) == sorted(names[j] for j in path["kept"][i])


def test_a_click_on_the_picture_moves_the_slider(visit):
    browser = visit(documents.by_cv())
    from selenium.webdriver.common.action_chains import ActionChains

    plot = find(browser, ".plot-path")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    wide = plot.size["width"]
    for share in (0.25, 0.8):
        ActionChains(browser).move_to_element_with_offset(
            plot, round((share - 0.5) * wide), 0
        ).click().perform()
        assert float(state(browser)["cursors"][0][:-1]) == pytest.approx(100 * share, abs=1.5)


def test_the_thumb_stands_above_the_line(visit):
    browser = visit(documents.by_cv())
    for key in ("HOME", "END"):
        focus(browser, "input[type=range]")
        press(browser, key)
        thumb, line = browser.execute_script(
            "const s = document.querySelector('input[type=range]'), b = s.getBoundingClientRect();"
            "const x = b.left + 10 + (b.width - 20) * s.value / s.max;"
            "return [x, document.querySelector('.cursor').getBoundingClientRect().left]"
        )
        assert thumb == pytest.approx(line, abs=1.5)


def test_a_screen_reader_hears_where_the_slider_rests(visit):
    document = documents.by_cv()
    browser = visit(document)
    assert texts(browser, "[data-live]") == [""]
    focus(browser, "input[type=range]")
    press(browser, "END")
    said = spoken(browser)
    assert said.startswith(f"alpha {number(document['targets'][0]['path']['alphas'][-1])}: 8 var")
    assert "CV error" in said and "entered: " in said


def test_buttons_lead_to_the_choices_of_the_rules(visit):
    document = documents.by_paired()
    cv = document["targets"][0]["cv"]
    browser = visit(document)
    for button, rule in zip(find_all(browser, "[data-go]"), ("paired", "min", "1se"), strict=True):
        button.click()
        assert state(browser)["alpha"] == [number(cv[f"alpha_{rule}"])] * 2


def test_the_slider_of_an_average_starts_where_most_of_the_weight_is(visit):
    document = documents.by_average()
    target = document["targets"][0]
    browser = visit(document)
    kept = target["path"]["kept"][target["index"]]
    assert len(state(browser)["table"]) == len(kept)
    focus(browser, "input[type=range]")
    press(browser, "END")
    find(browser, "[data-go]").click()
    assert spoken(browser).startswith(f"alpha {number(target['cv']['alpha_min'])}: ")
    deadline = time.monotonic() + 10
    while not texts(browser, "[data-live]")[0].endswith("the model of most weight."):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_each_target_has_its_own_slider(visit):
    browser = visit(documents.of_two_targets())
    second = find(browser, "[data-explorer='1'] .side table").text
    focus(browser, "#slider-0")
    press(browser, "HOME")
    assert find(browser, "[data-explorer='1'] .side table").text == second
    assert find(browser, "#slider-0").get_attribute("value") == "0"


def test_the_script_writes_numbers_as_python_does(visit):
    browser = visit(documents.by_cv())
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
    browser = visit(documents.of_many_variables())
    kept = documents.of_many_variables()["targets"][0]["kept"]
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
@pytest.mark.parametrize(
    "kind",
    [documents.by_cv, documents.with_warnings, documents.by_average],
    ids=["plain", "warned", "averaged"],
)
def test_every_text_can_be_read(visit, theme, kind):
    browser = visit(kind(), theme=theme)
    page = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", page))) > 600) == (theme == "light")
    found = browser.execute_script(CONTRASTS)
    assert len(found) > 100
    assert min(found)[0] >= 4.5, min(found)


def test_the_button_turns_the_theme_and_back(visit):
    browser = visit(documents.by_cv(), theme="dark")
    background = "return getComputedStyle(document.body).backgroundColor"
    dark = browser.execute_script(background)
    button = find(browser, "#theme")
    assert button.text == "Light"
    button.click()
    light = browser.execute_script(background)
    assert light == "rgb(255, 255, 255)" and light != dark
    assert min(browser.execute_script(CONTRASTS))[0] >= 4.5
    assert button.text == "Dark"
    button.click()
    assert browser.execute_script(background) == dark


@pytest.mark.parametrize("kind", documents.KINDS, ids=lambda kind: kind.__name__)
def test_the_page_never_scrolls_sideways(visit, kind):
    browser = visit(kind())
    for width in (360, 700, 1280):
        resize(browser, width)
        inside, scrolled, seen = browser.execute_script(
            "const e = document.documentElement;return [innerWidth, e.scrollWidth, e.clientWidth]"
        )
        assert inside == width
        assert scrolled <= seen


def test_labels_of_a_picture_do_not_overlap(visit):
    browser = visit(documents.by_cv(400, 100, 12))
    for axis in (".plot-path > text", ".plot-curve > text", ".labels text"):
        boxes = browser.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map((e) => {"
            "const b = e.getBoundingClientRect();"
            "return [b.left, b.right, b.top + 2, b.bottom - 2]})",
            axis,
        )
        assert len(boxes) > 5
        for i, a in enumerate(boxes):
            for b in boxes[:i]:
                assert a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] or b[3] <= a[2]


def test_the_keyboard_reaches_everything_and_shows_where_it_is(visit):
    browser = visit(documents.by_cv())
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


def test_the_skip_link_leads_to_the_answer(visit):
    browser = visit(documents.by_cv())
    press(browser, "TAB", "ENTER")
    assert browser.execute_script("return document.activeElement.id") == "main"


def test_without_a_script_the_page_is_whole(visit):
    browser = visit(documents.by_cv(), script=False)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert not find(browser, "input[type=range]").is_displayed()
    assert not find(browser, "#theme").is_displayed()
    assert find(browser, ".kept").is_displayed() and find(browser, ".plot-path").is_displayed()
    assert len(find_all(browser, ".side tbody tr")) == 3


def test_paper_is_white_and_has_no_controls(visit):
    document = documents.of_many_variables()
    browser = visit(document, theme="dark", media="print")
    page = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert page == "rgb(255, 255, 255)"
    for selector in ("input[type=range]", "#theme", ".skip", ".cursor", "[data-unfold]"):
        assert not find(browser, selector).is_displayed()
    # What the screen folds, paper shows.
    assert len(rows_seen(browser)) == len(document["targets"][0]["kept"])
    assert min(browser.execute_script(CONTRASTS))[0] >= 4.5
    pdf = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(pdf["data"]).startswith(b"%PDF")
