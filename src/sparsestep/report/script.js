"use strict";
(function () {
  const SVG = "http://www.w3.org/2000/svg";
  const MINUS = "\u2212", MISSING = "\u2013", TIMES = "\u00d7";
  const SUPERSCRIPTS = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079";
  // A table of hundreds of rows, made anew at each step of the slider, would make it halt.
  const MOST_ROWS = 60;
  const root = document.documentElement;
  root.classList.add("js");

  // Halves as in Python: those of the binary number, which toLocaleString does not see.
  function fixed(value, decimals) {
    const text = Math.abs(value).toFixed(decimals), [whole, ...rest] = text.split(".");
    const grouped = [whole.replace(/\B(?=(\d{3})+$)/g, ","), ...rest].join(".");
    return (value < 0 && Number(text) !== 0 ? MINUS : "") + grouped;
  }

  // The same texts as `number` in numbers.py.
  function number(value, digits) {
    if (value === null) return MISSING;
    if (value === 0) return "0";
    const [mantissa, power] = Math.abs(value).toExponential(digits - 1).split("e");
    const exponent = Number(power);
    if (exponent >= -4 && exponent < 7) return fixed(value, Math.max(digits - 1 - exponent, 0));
    const raised = String(exponent).replace("-", "\u207b").replace(/\d/g, (d) => SUPERSCRIPTS[d]);
    return (value < 0 ? MINUS : "") + mantissa + " " + TIMES + " 10" + raised;
  }

  function set(node, attributes) {
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return node;
  }

  const draw = (name, attributes) => set(document.createElementNS(SVG, name), attributes);
  // As in numbers.py.
  const decimals = (text) => text.includes(TIMES) ? 0 : (text.split(".")[1] || "").length;
  const padding = (text, places) => text.includes(TIMES) || places === decimals(text) ? ""
    : (decimals(text) ? "" : ".") + "0".repeat(places - decimals(text));

  function explore(section) {
    const part = (selector) => section.querySelector(selector);
    const data = JSON.parse(part("script").textContent);
    const slider = part("input[type=range]"), find = part("[data-find]"), body = part(".side tbody");
    const blank = part("template").content.firstElementChild;
    const cursors = section.querySelectorAll(".cursor");
    const here = part(".plot-curve")?.appendChild(draw("circle", { class: "here", r: 4.5 }));
    const models = data.models.map(([ranks, coefs]) => new Map(ranks.map((rank, i) => [rank, coefs[i]])));
    const chosen = models[data.which[data.chosen]];
    let saying;

    const share = (effect) => 100 * (effect - data.low) / (data.high - data.low);
    const clipped = (effect) => Math.min(Math.max(effect, data.low), data.high);
    const variables = (k) => k === 1 ? "1 variable" : k + " variables";

    const spread = (i) => (data.spreads?.[i] ?? null) === null ? "" : " \u00b1 " + number(data.spreads[i], 3);
    const value = (i) => data.values && number(data.values[i], 4) + spread(i);

    function row(rank, coef, places) {
      const node = blank.cloneNode(true), cell = (selector) => node.querySelector(selector);
      const style = data.styles[rank], name = data.names[rank], gone = coef === undefined;
      const effect = gone ? 0 : clipped(coef * data.scale[rank]);
      const ends = [share(Math.min(effect, 0)), share(Math.max(effect, 0))];
      const text = gone ? MISSING : number(coef, 4);
      node.classList.toggle("gone", gone);
      set(cell(".swatch line"), { class: style });
      set(cell(".bar rect"), { class: style, x: ends[0] + "%", width: ends[1] - ends[0] + "%" });
      cell(".name").textContent = name;
      set(cell(".num"), { "data-pad": padding(text, places) }).textContent = text;
      cell(".what").textContent = gone ? "left" : chosen.has(rank) ? "" : "entered";
      return node;
    }

    function table(model) {
      const wanted = (find?.value || "").trim().toLowerCase();
      const ranks = [...new Set([...chosen.keys(), ...model.keys()])].sort((a, b) => a - b)
        .filter((rank) => data.names[rank].toLowerCase().includes(wanted));
      const shown = ranks.slice(0, MOST_ROWS);
      const places = Math.max(0, ...shown.filter((rank) => model.has(rank))
        .map((rank) => decimals(number(model.get(rank), 4))));
      body.replaceChildren(...shown.map((rank) => row(rank, model.get(rank), places)));
      part("[data-rest]").textContent = ranks.length > shown.length
        ? "And " + (ranks.length - shown.length) + " more: find them by name."
        : ranks.length === 0 ? (wanted ? "No variable of this model has such a name." : "No variable is kept.") : "";
    }

    const listed = (title, ranks) => ranks.length ? title + ranks.slice(0, 5).map((rank) => data.names[rank]).join(", ") +
      (ranks.length > 5 ? " and " + (ranks.length - 5) + " more" : "") + "." : "";
    const without = (some, others) => [...some.keys()].filter((rank) => !others.has(rank));

    // What the next change to the right will be.
    function coming(i) {
      const j = data.which.findIndex((model, k) => k > i && model !== data.which[i]);
      if (j < 0) return "";
      const model = models[data.which[i]], after = models[data.which[j]];
      const changes = listed(" Entering: ", without(after, model)) + listed(" Leaving: ", without(model, after));
      return changes && "The next change is at alpha " + number(data.alphas[j], 4) + "." + changes;
    }

    function dot(rank, coef, x) {
      const height = 100 - share(coef * data.scale[rank]);
      return draw("circle", { class: "dot " + data.styles[rank], cx: x, cy: height + "%", r: 4 });
    }

    function say(i, model) {
      part("[data-live]").textContent = "alpha " + number(data.alphas[i], 4) + ": " + variables(model.size) + "." +
        (data.values ? " " + data.judge + " " + value(i) + "." : "") +
        listed(" entered: ", without(model, chosen)) + listed(" left: ", without(chosen, model)) +
        (i === data.chosen ? " the " + data.called + "." : "");
    }

    function show(spoken) {
      const i = Number(slider.value), model = models[data.which[i]], x = data.x[i] + "%";
      const texts = { alpha: number(data.alphas[i], 4), count: String(model.size), r2: number(data.r2[i], 3), value: value(i) };
      for (const node of section.querySelectorAll("[data-key]")) node.textContent = texts[node.dataset.key];
      slider.setAttribute("aria-valuetext", "alpha " + texts.alpha + ", " + variables(model.size));
      for (const cursor of cursors) set(cursor, { x1: x, x2: x });
      if (here) set(here, { cx: x, cy: data.heights[i] + "%" });
      const within = [...model].filter(([rank, coef]) => clipped(coef * data.scale[rank]) === coef * data.scale[rank]);
      part(".dots").replaceChildren(...within.slice(0, MOST_ROWS).reverse().map(([rank, coef]) => dot(rank, coef, x)));
      table(model);
      part("[data-next]").textContent = coming(i);
      clearTimeout(saying);
      // Spoken when the slider rests: each step would be interrupted by the next.
      if (spoken) saying = setTimeout(() => say(i, model), 400);
    }

    function go(index) {
      slider.value = index;
      show(true);
    }

    function follow(event) {
      const box = event.currentTarget.getBoundingClientRect();
      const x = 100 * (event.clientX - box.left) / box.width;
      const distance = (i) => Math.abs(data.x[i] - x);
      go(data.x.reduce((best, _, i) => distance(i) < distance(best) ? i : best, 0));
    }

    for (const plot of section.querySelectorAll(".plot")) {
      plot.addEventListener("pointerdown", follow);
      plot.addEventListener("pointermove", (event) => { if (event.buttons) follow(event); });
    }
    for (const button of section.querySelectorAll("[data-go]")) {
      button.addEventListener("click", () => go(Number(button.dataset.go)));
    }
    slider.addEventListener("input", () => show(true));
    find?.addEventListener("input", () => show(false));
    slider.value = data.chosen;
    show(false);
  }

  // A long table is folded; looking for a name in it unfolds it.
  function shorten(button) {
    const table = document.getElementById(button.dataset.unfold), label = button.textContent;
    const input = document.querySelector("[data-filter=" + table.id + "]");
    function fold(folded) {
      table.classList.toggle("folded", folded);
      button.setAttribute("aria-expanded", String(!folded));
      button.textContent = folded ? label : "Show fewer";
    }
    button.addEventListener("click", () => fold(!table.classList.contains("folded")));
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      if (wanted) fold(false);
      for (const line of table.tBodies[0].rows) line.hidden = !line.cells[0].textContent.toLowerCase().includes(wanted);
    });
    fold(true);
  }

  function themes(button) {
    const wish = matchMedia("(prefers-color-scheme: dark)");
    const dark = () => (root.style.colorScheme || (wish.matches ? "dark" : "light")) === "dark";
    const label = () => { button.textContent = dark() ? "Light" : "Dark"; };
    button.addEventListener("click", () => {
      root.style.colorScheme = dark() ? "light" : "dark";
      label();
    });
    wish.addEventListener("change", label);
    label();
  }

  document.querySelectorAll("[data-explorer]").forEach(explore);
  document.querySelectorAll("[data-unfold]").forEach(shorten);
  themes(document.getElementById("theme"));
})();
