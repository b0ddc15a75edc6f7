"use strict";
/* Parts of a case's page: elements made without HTML from texts, marks of outcomes, tables of numbers, and charts. */
(function () {
  const numbers = window.opconformNumbers;

  /* An element; text is text whatever it holds. `options` are attributes; null, undefined and false leave them out. */
  function h(name, options, ...content) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(options || {})) {
      if (value !== null && value !== undefined && value !== false) {
        element.setAttribute(key, value === true ? "" : value);
      }
    }
    element.append(...content.flat().filter((one) => one !== null && one !== undefined && one !== false));
    return element;
  }

  const SYMBOLS = { "pass": "✓", "wrong-value": "≠", "wrong-shape": "▭", "wrong-dtype": "τ", "error": "✕", "crash": "✹",
    "timeout": "◷", "accepted-invalid": "!", "unsupported": "–", "waived": "~", "runner-error": "?", "not-run": "·" };

  function mark(outcome) {
    const name = outcome || "not-run";
    if (!outcome) { return h("span", { class: "outcome not-run", role: "img", "aria-label": "not run", title: "not run" }, "·"); }
    return h("span", { class: `outcome ${name}` }, h("span", { class: "symbol", "aria-hidden": "true" },
      SYMBOLS[name] || "?"), name.replace("not-run", "not run"));
  }

  /* A button that copies what `text()` returns at that moment. */
  function copyButton(label, text) {
    const button = h("button", { type: "button", class: "copy" }, label);
    button.addEventListener("click", async () => {
      const done = await window.opconform.copy(text());
      button.textContent = done ? "Copied" : "Not copied";
      setTimeout(() => { button.textContent = label; }, 1500);
    });
    return button;
  }

  function command(text, label = "Copy") {
    return h("div", { class: "command" }, h("code", { tabindex: "0" }, text), copyButton(label, () => text));
  }

  function folded(title, content, open = false) {
    const box = h("details", { open }, h("summary", null, title));
    const fill = () => { if (box.childElementCount === 1) { box.append(...[content()].flat()); } };
    if (open) { fill(); }
    box.addEventListener("toggle", () => { if (box.open) { fill(); } });
    return box;
  }

  const shapeText = (shape) => (shape.length ? shape.join("×") : "scalar");

  function place(shape, flat) {
    const found = [];
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      found.unshift(flat % shape[axis]);
      flat = Math.floor(flat / shape[axis]);
    }
    return `[${found.join(", ")}]`;
  }

  /* A number that shows itself in the notation of its page, and in all of them when pointed at. */
  function number(type, value) {
    const title = [numbers.shortest(type, value), `= ${numbers.exact(value)}`, `= ${numbers.hexadecimal(value)}`];
    const element = h("span", { class: "number", title: numbers.isFloat(type) ? title.join("\n") : null });
    element.notate = (notation) => { element.textContent = numbers.text(type, value, notation); };
    element.notate("decimal");
    return element;
  }

  function notate(root, notation) {
    for (const element of root.querySelectorAll(".number")) { element.notate(notation); }
  }

  function box(label, ...content) {
    return h("div", { class: "box numbers", tabindex: "0", role: "region", "aria-label": label }, ...content);
  }

  const WIDEST = 16;

  /* The first elements of a tensor: rows for all axes but the last; a long last axis is wrapped. */
  function tensor(told, label) {
    const values = numbers.elements(told.type, told.bits);
    if (!values) { return h("p", { class: "soft" }, told.left_out || `elements of ${told.type}, which are not shown`); }
    if (!values.length) { return h("p", { class: "soft" }, "no elements"); }
    const last = told.shape.length ? told.shape[told.shape.length - 1] : 1;
    const width = Math.min(last, last > WIDEST ? 8 : WIDEST);
    const rows = [];
    for (let line = 0; line < values.length; line += last) {
      for (let start = line; start < Math.min(line + last, values.length); start += width) {
        const part = values.slice(start, Math.min(start + width, line + last));
        rows.push(h("tr", null, h("th", { scope: "row" }, place(told.shape, start)),
          part.map((value) => h("td", null, number(told.type, value)))));
      }
    }
    return [box(label, h("table", { class: "tensor" }, h("tbody", null, rows))), rest(told, values.length)];
  }

  function rest(told, shown) {
    if (!told.summary) { return null; }
    const { elements, zeros, nan, infinite, least, greatest } = told.summary;
    const words = [`and ${(elements - shown).toLocaleString("en")} more`];
    if (least !== undefined) { words.push(`all between ${least} and ${greatest}`); }
    for (const [count, what] of [[zeros, "zeros"], [nan, "NaN"], [infinite, "infinite"]]) {
      if (count) { words.push(`${count.toLocaleString("en")} ${what}`); }
    }
    return h("p", { class: "soft small" }, words.join("; "));
  }

  /* What an element must be: its bounds in words and numbers. */
  function wanted(wide, value, lower, upper, flags) {
    const named = (flags || []).map((flag) => flag.replace("positive-infinity", "+inf").replace("negative-infinity", "-inf")
      .replace("nan", "NaN").replace("free", "any value").replace("-", " "));
    if ((flags || []).includes("free")) { return ["any value"]; }
    const others = named.length ? ` or ${named.join(" or ")}` : "";
    if (Number.isNaN(lower)) { return [named.length ? named.join(" or ") : "NaN"]; }
    const sign = (flags || []).find((flag) => flag.endsWith("-zero"));
    if (sign && lower === 0 && upper === 0) { return [sign === "negative-zero" ? "-0.0" : "+0.0"]; }
    if (lower === upper) { return [number(wide, lower), " exactly", others]; }
    return [number(wide, value), h("span", { class: "soft" }, " in ["), number(wide, lower), h("span", { class: "soft" },
      ", "), number(wide, upper), h("span", { class: "soft" }, "]"), others];
  }

  function bounds(told, label) {
    const [value, lower, upper] = [told.value, told.lower, told.upper].map((bits) => numbers.elements(told.in, bits));
    const name = [told.name, told.type, shapeText(told.shape)].filter(Boolean).join(" ");
    if (!value.length) { return h("p", { class: "soft" }, `${name}: no elements`); }
    const rows = value.map((one, at) => h("tr", null, h("th", { scope: "row" }, place(told.shape, at)),
      h("td", null, wanted(told.in, one, lower[at], upper[at], told.flags && told.flags[at]))));
    const more = told.size - value.length;
    return [
      box(label, h("table", { class: "tensor" }, h("caption", null, name),
        h("tbody", null, rows))),
      more > 0 ? h("p", { class: "soft small" }, `and ${more.toLocaleString("en")} more`) : null,
      told.limit ? h("p", { class: "soft small" }, "and the mean of (error/σ)² over the tensor is at most ",
        String(told.limit)) : null,
    ];
  }

  function asText(found) {
    if (typeof found !== "number") { return found; }
    return Math.abs(found) >= 1e6 ? found.toExponential(3) : String(Number(found.toPrecision(4)));
  }

  /* First mismatches, as numpy.testing would tell them, with the bound. */
  function mismatches(told, output, label) {
    const { type, shape } = output, list = told.mismatches, wide = told.in;
    const got = numbers.elements(type, list.got);
    const [value, lower, upper] = [list.value, list.lower, list.upper].map((bits) => numbers.elements(wide, bits));
    const heads = ["element", "got", "want", told.float ? "off by (ulp)" : "off by"];
    if (told.float) { heads.push("error / bound"); }
    const rows = list.places.map((flat, at) => h("tr", null, h("th", { scope: "row" }, place(shape, flat)),
      h("td", null, number(type, got[at])),
      h("td", null, wanted(wide, value[at], lower[at], upper[at], list.flags && list.flags[at])),
      h("td", { class: "num" }, told.float ? asText(list.ulps[at]) : offBy(got[at], value[at])),
      told.float ? h("td", { class: "num" }, list.shares[at] === "inf" || list.shares[at] === "-inf" ? "no room"
        : asText(list.shares[at])) : null));
    const more = told.wrong - list.places.length;
    return [
      box(label, h("table", null, h("thead", null, h("tr", null, heads.map((head) => h("th",
        { scope: "col" }, head)))), h("tbody", null, rows))),
      more > 0 ? h("p", { class: "soft small" }, `and ${more.toLocaleString("en")} more`) : null,
    ];
  }

  const offBy = (got, want) => (typeof got === "bigint" ? `${got > want ? "+" : ""}${got - want}` : "");

  /* Charts come with their libraries, which are loaded when the first one is drawn. */
  async function plot() {
    await window.opconform.load("assets/vendor/d3.min.js");
    await window.opconform.load("assets/vendor/plot.umd.min.js");
    return window.Plot;
  }

  function chart(draw, label) {
    const figure = h("figure", { class: "chart", role: "img", "aria-label": label });
    const again = async () => {
      const drawn = draw(await plot());
      drawn.setAttribute("aria-hidden", "true");
      figure.replaceChildren(drawn);
    };
    again().catch((error) => { figure.textContent = String(error.message); });
    return figure;
  }

  const isDark = () => getComputedStyle(document.documentElement).colorScheme.startsWith("dark");

  /* The heat map: a cell an element, or a run of them; how far off, as a share of the bound, and which are wrong. */
  function heatMap(told, shape) {
    const { errors, wrong, run } = told.cells;
    const last = shape.length ? shape[shape.length - 1] : 1;
    const columns = run === 1 && last > 1 && last <= 64 && shape.length > 1 ? last : Math.min(64, errors.length);
    const cells = errors.map((error, at) => ({ x: at % columns, y: Math.floor(at / columns), wrong: wrong[at] === "1",
      shade: shade(error, told.float), title: title(at, error, told, shape) }));
    const rows = Math.ceil(errors.length / columns);
    const side = Math.max(8, Math.min(28, Math.floor(620 / columns)));
    const label = `${told.wrong} of ${told.size} elements wrong`;
    return h("div", null, chart((Plot) => Plot.plot({
      width: columns * side + 2, height: rows * side + 2, margin: 1, axis: null,
      color: { type: "linear", domain: [-2, 0, 2], range: isDark() ? ["#56b4e9", "#2b2f33", "#e8743b"]
        : ["#0072b2", "#f1f0ec", "#c04a00"], clamp: true },
      x: { type: "band", padding: 0.06 }, y: { type: "band", padding: 0.06 },
      marks: [
        Plot.cell(cells, { x: "x", y: "y", fill: "shade", title: "title" }),
        Plot.text(cells.filter((cell) => cell.wrong), { x: "x", y: "y", text: () => "×", fill: "currentColor",
          fontSize: Math.max(8, side * 0.6), pointerEvents: "none" }),
      ],
    }), `Differences: ${label}`), legend(told, run));
  }

  function legend(told, run) {
    return h("p", { class: "legend small soft" }, h("span", { class: "ramp", "aria-hidden": "true" }),
      told.float ? "too small · exact · too large, full colour at twice the bound; " : "too small · exact · too large; ",
      "× not admitted", run > 1 ? `; each cell is the worst of ${run} elements` : "");
  }

  function shade(error, isFloat) {
    if (error === "inf" || error === "nan") { return 2; }
    if (error === "-inf") { return -2; }
    return isFloat ? error : Math.sign(error) * Math.min(2, 1 + Math.log10(1 + Math.abs(error)) / 4) * (error ? 1 : 0);
  }

  function title(at, error, told, shape) {
    const from = place(shape, at * told.cells.run);
    return `${told.cells.run > 1 ? `from ${from} on` : from}: ${told.float ? `error / bound ${error}` : `off by ${error}`}`;
  }

  /* How many elements are how many ulps off; ranges double. */
  function histogram(told) {
    const { steps, counts, apart } = told.histogram;
    const name = (step) => (step === 0 ? "≤ ½" : `${step < 0 ? "−" : "+"}${power(Math.abs(step) - 1)}`);
    const power = (exponent) => (exponent < 1 ? "1" : exponent > 14 ? `2^${exponent}` : String(2 ** exponent));
    const bars = steps.map((step, at) => ({ step, name: name(step), count: counts[at] }));
    const label = bars.map((bar) => `${bar.count} at ${bar.name}`).join(", ");
    const every = Math.ceil(bars.length / 12); // more names than that would overlap
    return h("div", null, chart((Plot) => Plot.plot({
      width: Math.max(220, Math.min(620, 70 + bars.length * 46)), height: 170, marginBottom: 38, marginTop: 22,
      style: { background: "transparent" },
      x: { domain: bars.map((bar) => bar.name), label: "off by up to … ulp", tickSize: 0,
        tickFormat: (text, at) => (at % every ? "" : text) },
      y: { axis: null },
      marks: [
        Plot.barY(bars, { x: "name", y: "count", inset: 1,
          fill: (bar) => (bar.step === 0 ? "var(--bar)" : bar.step > 0 ? "var(--all)" : "var(--bar-rest)") }),
        Plot.text(bars, { x: "name", y: "count", text: (bar) => bar.count.toLocaleString("en"), dy: -7,
          fill: "currentColor" }),
        Plot.ruleY([0], { stroke: "currentColor" }),
      ],
    }), `Errors in ulp: ${label}`), apart ? h("p", { class: "soft small" }, `${apart} without a distance: NaN or infinity`)
      : null);
  }

  window.opconformParts = { h, mark, copyButton, command, folded, tensor, bounds, mismatches, heatMap, histogram, notate,
    shapeText, asText };
})();
