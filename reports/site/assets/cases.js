"use strict";
/* The list of all cases: filters that are the address, a table of pages of rows, and a case in a pane beside it. */
(function () {
  const { h, mark, copyButton } = window.opconformParts;
  const store = window.opconformCases;
  const byId = (id) => document.getElementById(id);
  const form = byId("filters"), list = byId("list"), pane = byId("pane"), told = byId("count");
  const WIDE = window.matchMedia("(min-width: 75rem)");
  const FEW = 12;  // ids that a command line takes
  const SUGGESTED = 1000;
  let cases, table, words = null, view, found = new Uint32Array(0), opened = -1;

  /* Filters and address */

  const FILTERS = ["q", "operator", "standard", "type", "outcome", "backend", "clause", "differ"];

  function fill() {
    const { head } = cases;
    const standards = [...new Set(head.words.operator.map((word) => word.split("/")[0]))];
    const types = [...new Set(head.words.types.flatMap((word) => word.split(",")))].filter(Boolean).sort();
    options(byId("operators"), head.words.operator.slice(0, SUGGESTED));
    options(byId("clauses"), head.clauses.slice(0, SUGGESTED));
    options(form.elements.standard, standards);
    options(form.elements.type, types);
    options(form.elements.outcome, [...head.outcomes.filter((name) => cases.backends.some((backend) =>
      backend.outcomes.includes(head.outcomes.indexOf(name)))), "not-run"]);
    for (const backend of cases.backends) { form.elements.backend.append(h("option", { value: backend.key }, backend.name)); }
    form.elements.standard.closest("label").hidden = standards.length < 2;
    for (const one of document.querySelectorAll(".several")) { one.hidden = cases.backends.length < 2; }
  }

  const options = (element, names) => element.append(...names.map((name) => h("option", { value: name }, name)));

  function toForm() {
    for (const name of FILTERS) {
      const field = form.elements[name];
      if (field.type === "checkbox") { field.checked = Boolean(view[name]); continue; }
      if (field.tagName === "SELECT" && view[name] && ![...field.options].some((one) => one.value === view[name])) {
        field.append(h("option", { value: view[name] }, view[name]));  // from the URL: shown even if no case has it
      }
      field.value = view[name];
    }
    byId("kinds").setAttribute("aria-pressed", String(view.view === "kinds"));
  }

  function fromForm() {
    for (const name of FILTERS) {
      const field = form.elements[name];
      view[name] = field.type === "checkbox" ? (field.checked ? "1" : "") : field.value.trim();
    }
    view.page = "";
  }

  /* Selecting and telling */

  async function select() {
    if (view.q && !words) { words = await store.words(); }
    found = cases.select(view, view.q ? words : null);
    const of = `${found.length.toLocaleString("en")} of ${cases.count.toLocaleString("en")} cases`;
    told.textContent = found.length === cases.count ? `${of.split(" of ")[1]}` : of;
    byId("left-out").hidden = !(view.q && words && words.left_out);
    byId("clear").hidden = !FILTERS.some((name) => view[name]);
    byId("empty").hidden = found.length > 0;
    commandLine();
  }

  function commandLine() {
    const few = found.length > 0 && found.length <= FEW;
    const names = few ? Array.from(found, (number) => cases.id(number)) : [view.operator].filter(Boolean);
    const globs = names.length ? names : [...(view.standard ? [`${view.standard}/*`] : [])];
    const line = globs.map((glob) => `--select '${glob.replaceAll("[", "[[]")}'`).join(" ");
    byId("selected").hidden = !line || !found.length;
    byId("select-line").textContent = line;
    byId("select-note").textContent = few ? "runs exactly these" : "runs all of this operator or standard";
  }

  async function update() {
    address();
    toForm();
    await select();
    list.hidden = view.view === "kinds";
    byId("pager").hidden = list.hidden || found.length <= PAGE;
    byId("kinds-list").hidden = view.view !== "kinds";
    if (view.view === "kinds") { await showKinds(); } else { await showTable(); }
    resize();
  }

  /* Backends that ran none of the cases shown, as those of another standard, have no column. */
  function showColumns() {
    for (const { place, outcomes } of cases.backends) {
      const ran = found.some((number) => outcomes[number] !== store.NONE);
      const column = table.getColumn(`b${place}`);
      if (column.isVisible() !== (ran || !found.length)) { column.toggle(); }
    }
    if (opened < 0) { stretch(); }
  }

  function address() {
    const given = Object.fromEntries(store.VIEW.map((name) => [name, view[name]]));
    window.opconform.setParameters({ ...given, case: opened < 0 ? "" : cases.id(opened) });
  }

  /* The table: rows are made for one page of the list at a time */

  const PAGE = 200;

  function row(number) {
    const made = { number };
    for (const part of store.PARTS) { made[part] = cases.word(part, number); }
    for (const backend of cases.backends) { made[`b${backend.place}`] = cases.outcome(backend, number); }
    return made;
  }

  function columns() {
    const text = (title, field, more) => ({ title, field, formatter: (cell) => document.createTextNode(cell.getValue() || ""),
      tooltip: (_, cell) => cell.getValue() || "", ...more });
    const failing = (cell) => cases.fails(cases.backends[Number(cell.getField().slice(1))], cell.getData().number);
    const outcome = (cell) => {
      const made = mark(cell.getValue());
      if (failing(cell)) { made.classList.add("failing"); }
      return made;
    };
    const outcomes = cases.backends.map((backend) => ({ field: `b${backend.place}`, formatter: outcome,
      width: Math.min(260, Math.max(165, 60 + 8 * backend.name.length)),  // its name, and the mark of the order
      title: backend.name, titleFormatter: () => h("span", { title: `${backend.name} ${backend.version}` }, backend.name) }));
    const narrow = window.matchMedia("(max-width: 40rem)").matches;
    const few = narrow || outcomes.length <= 4;  // then they come first, next to an open case
    return [
      narrow ? { title: "Case", field: "operator", formatter: whole, width: Math.max(190, list.clientWidth - 140), cssClass: "whole" }
        : { title: "Operator", field: "operator", formatter: link, width: 200, frozen: true },
      ...(narrow ? outcomes : []),
      text("Types", "types", { width: 120 }), text("Shapes", "shapes", { width: 130 }),
      ...(few && !narrow ? outcomes : []),
      text("Settings", "settings", { width: 220 }), text("Fill", "fill", { width: 130 }),
      ...(cases.head.words.edge.some(Boolean) ? [text("Edge", "edge", { width: 150 })] : []),
      ...(few ? [] : outcomes),
    ];
  }

  /* All widths are given, and one column takes the rest: to have Tabulator measure them costs a second. */
  function stretch() {
    const last = table.getColumn("edge") || table.getColumn("fill");
    const used = table.getColumns().filter((one) => one.isVisible()).reduce((sum, one) => sum + one.getWidth(), 0);
    const width = Math.max(150, last.getWidth() + list.clientWidth - 20 - used);
    if (width !== last.getWidth()) { last.setWidth(width); }
  }

  function pageAddress(number) {
    const given = store.VIEW.filter((name) => view[name] && !["page", "view"].includes(name)).map((name) => [name, view[name]]);
    return `case.html?${new URLSearchParams([["id", cases.id(number)], ...given])}`;
  }

  const link = (cell) => {
    const { number } = cell.getData();
    return h("a", { href: pageAddress(number), "data-number": number, "aria-label": cases.id(number) },
      cell.getValue().slice(0, 200));
  };

  /* On a phone the case is in one cell, over as many lines as it needs. */
  const whole = (cell) => {
    const { number } = cell.getData();
    const id = cases.id(number), operator = cell.getValue();
    return h("span", null, link(cell), h("small", null, id.startsWith(`${operator}/`) ? id.slice(operator.length + 1) : id));
  };

  function request(_, __, { page, sort }) {
    view.sort = sort.length ? `${sort[0].dir === "desc" ? "-" : ""}${sort[0].field}` : "";
    view.page = page > 1 ? String(page) : "";
    found = cases.sorted(found === sortedFound.list ? sortedFound.source : found, view);
    sortedFound = { list: found, source: sortedFound.source };
    address();
    const part = found.subarray((page - 1) * PAGE, page * PAGE);
    return Promise.resolve({ data: Array.from(part, row), last_page: Math.max(1, Math.ceil(found.length / PAGE)),
      last_row: found.length });
  }
  let sortedFound = { list: null, source: null };

  async function showTable() {
    sortedFound = { list: found, source: cases.select({ ...view, sort: "" }, view.q ? words : null) };
    const page = Number(view.page) || 1;
    if (table) { showColumns(); await table.setPage(Math.min(page, Math.max(1, Math.ceil(found.length / PAGE)))).catch(() => {}); return; }
    const sort = view.sort ? [{ column: view.sort.replace("-", ""), dir: view.sort.startsWith("-") ? "desc" : "asc" }] : [];
    await new Promise((resolve) => {
      table = new window.Tabulator(list, {
        columns: columns(), height: list.clientHeight || 500, rowHeight: 34, renderVerticalBuffer: 200, index: "number",
        autoResize: false,  // it would rebuild all rows, and lose the focus
        pagination: true, paginationMode: "remote", paginationSize: PAGE, paginationInitialPage: page,
        paginationButtonCount: 3, sortMode: "remote", initialSort: sort, ajaxURL: "cases", ajaxRequestFunc: request,
        paginationElement: byId("pager"), headerSortTristate: true, dataLoader: false, columnDefaults: { vertAlign: "middle" },
        rowFormatter: (one) => { one.getElement().classList.toggle("opened", one.getData().number === opened); },
      });
      table.on("dataProcessed", resolve);
      table.on("tableBuilt", () => {
        showColumns();
        const holder = list.querySelector(".tabulator-tableholder");
        holder.removeAttribute("tabindex");  // a grid has groups of rows, and nothing between it and them
        holder.setAttribute("role", "presentation");
      });
    });
  }

  /* Failures of one kind */

  const KINDS = 300;

  async function showKinds() {
    words = words || await store.words();
    const only = view.backend ? (kind) => kind.backend.key === view.backend : () => true;
    const kinds = cases.kinds(found, words).filter(only);
    const rows = kinds.slice(0, KINDS).map(({ backend, number, count, said }) => h("tr", null,
      h("td", { class: "num" }, count.toLocaleString("en")),
      h("td", null, mark(cases.outcome(backend, number))), h("th", { scope: "row" }, backend.name),
      h("td", { class: "kind" }, h("a", { class: "id", href: pageAddress(number), "data-number": number },
        cases.id(number)), h("p", { class: "said" }, said))));
    const names = ["cases", "outcome", "backend", "first case"];
    byId("kinds-list").replaceChildren(
      h("p", { class: "count" }, `${kinds.length.toLocaleString("en")} kinds of failures`
        + (kinds.length > KINDS ? `, the ${KINDS} most frequent` : "")),
      h("div", { class: "box" }, h("table", null, h("thead", null, h("tr", null, names.map((name) => h("th",
        { scope: "col" }, name)))), h("tbody", null, rows))));
  }

  /* The pane */

  async function open(number, focus) {
    opened = number;
    pane.hidden = false;
    document.body.classList.add("with-pane");
    const bar = h("div", { class: "pane-bar" }, step(-1, "‹", "Previous case"), step(1, "›", "Next case"),
      h("a", { href: pageAddress(number) }, "Open as a page"), closer());
    await window.opconformCase.show(pane, cases, number, bar);
    address();
    if (table) {
      for (const one of table.getRows()) { one.getElement().classList.toggle("opened", one.getData().number === number); }
    }
    pane.scrollTop = 0;
    if (focus) { pane.focus(); }
  }

  function step(by, symbol, label) {
    const next = found[found.indexOf(opened) + by];
    const button = h("button", { type: "button", "aria-label": label, disabled: next === undefined }, symbol);
    button.addEventListener("click", async () => {
      await open(next);
      (pane.querySelector(`[aria-label="${label}"]:not([disabled])`) || pane).focus();
    });
    return button;
  }

  function closer() {
    const button = h("button", { type: "button", class: "close", "aria-label": "Close the case" }, "✕");
    button.addEventListener("click", close);
    return button;
  }

  function close() {
    const back = document.querySelector(`a[data-number="${opened}"]`);
    opened = -1;
    pane.hidden = true;
    document.body.classList.remove("with-pane");
    pane.replaceChildren();
    address();
    for (const one of document.querySelectorAll(".tabulator-row.opened")) { one.classList.remove("opened"); }
    if (back) { back.focus(); }
  }

  /* Export */

  function download(name, type, text) {
    const address_ = URL.createObjectURL(new Blob([text], { type }));
    h("a", { href: address_, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address_), 10_000);
  }

  const cell = (text) => {
    const safe = /^[=+\-@\t\r]/.test(text) && !/^-$/.test(text) ? `'${text}` : text;  // no formula for a spreadsheet
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };

  function asCsv() {
    const lines = [["case", ...cases.backends.map((backend) => `${backend.name} ${backend.version}`)]];
    for (const number of found) {
      lines.push([cases.id(number), ...cases.backends.map((backend) => cases.outcome(backend, number) || "")]);
    }
    return lines.map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
  }

  /* Events */

  function links(event) {
    const target = event.target.closest("a[data-number]");
    const plain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    if (target && plain && WIDE.matches) {
      event.preventDefault();
      open(Number(target.dataset.number), event.detail === 0);
    }
  }

  function rowClick(event) {
    const target = event.target.closest(".tabulator-row");
    const anchor = target && target.querySelector("a[data-number]");
    if (anchor && !event.target.closest("a") && !String(window.getSelection())) { anchor.click(); }
  }

  function keys(event) {
    const anchor = event.target.closest("a[data-number]");
    const step_ = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (anchor && step_) {
      const row_ = anchor.closest(".tabulator-row");
      const next = row_ && (step_ > 0 ? row_.nextElementSibling : row_.previousElementSibling);
      const other = next && next.querySelector("a[data-number]");
      if (other) { event.preventDefault(); other.focus(); }
    }
    if (event.key === "Escape" && opened >= 0) { close(); }
  }

  let waiting = 0;
  function changed(event) {
    clearTimeout(waiting);
    waiting = setTimeout(() => { fromForm(); update(); }, event.type === "input" ? 150 : 0);
  }

  function resize() {
    if (!table || list.hidden) { return; }
    const before = list.style.height;
    list.style.height = "";
    const height = list.clientHeight;
    list.style.height = before;
    if (before !== `${height}px`) { table.setHeight(height); }
  }

  function listen() {
    window.addEventListener("resize", resize);
    form.addEventListener("input", changed);
    form.addEventListener("submit", (event) => event.preventDefault());
    byId("clear").addEventListener("click", () => { form.reset(); fromForm(); update(); form.elements.q.focus(); });
    byId("kinds").addEventListener("click", () => { view.view = view.view === "kinds" ? "" : "kinds"; update(); });
    byId("csv").addEventListener("click", () => download("cases.csv", "text/csv", asCsv()));
    byId("select-line").after(copyButton("Copy", () => byId("select-line").textContent));
    const ids = copyButton("Copy ids", () => Array.from(found, (number) => cases.id(number)).join("\n"));
    ids.className = "";
    byId("ids").replaceWith(ids);
    list.addEventListener("click", rowClick);
    document.addEventListener("click", links);
    document.addEventListener("keydown", keys);
  }

  async function start() {
    const parameters = window.opconform.parameters();
    view = store.viewOf(parameters);
    const libraries = window.opconform.load("assets/vendor/tabulator.min.js");
    cases = await store.load();
    await libraries;
    fill();
    listen();
    await update();
    document.body.dataset.ready = "yes";
    performance.mark("opconform-rows");
    const wanted = parameters.get("case");
    const number = wanted ? cases.find(wanted) : -1;
    if (number >= 0 && WIDE.matches) { await open(number); }
  }

  start().catch((error) => { told.textContent = String(error.message); });
})();
