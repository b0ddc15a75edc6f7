"use strict";
/* Filters of the matrix, kept in the address; rows by element type, from data that is loaded when it is asked for. */
(function () {
  const form = document.getElementById("filters");
  const table = document.getElementById("matrix");
  const fields = ["operator", "standard", "type", "backend", "outcome"];
  const heads = [...table.tHead.rows[0].cells].slice(1);
  const backends = heads.map((head) => head.dataset.backend);
  const rows = [...table.querySelectorAll("tr[data-operator]")].map((row) => {
    const cells = [...row.cells].slice(1);
    const links = cells.map((cell) => cell.querySelector("a"));
    return {
      row, cells, links, name: row.dataset.operator, body: row.closest("tbody"),
      outcomes: row.dataset.outcomes.split(" "), type: "",
    };
  });
  const idle = window.requestIdleCallback
    || ((work) => setTimeout(() => work({ timeRemaining: () => 0 }), 30));
  const busy = window.cancelIdleCallback || clearTimeout;
  const AT_ONCE = 60;  // rows that a filter shows before the page is drawn; laying out thousands of cells takes a second
  let later = 0;
  let whole = () => {};  // shows the rows that are still to come
  const bodies = [...table.querySelectorAll("tbody.operator")];
  const count = document.getElementById("count");
  let types = null;
  opconform.takeMatrix = (told) => { types = told; };
  const loaded = () => opconform.load("data/matrix.js").catch((error) => { count.textContent = error.message; });

  function address(operator, type, backend, failing) {
    const found = new URLSearchParams();
    found.set("operator", operator);
    if (type) { found.set("type", type); }
    found.set("backend", backend);
    if (failing) { found.set("outcome", "failed"); }
    return `cases.html?${found}`;
  }

  function mark(cell, operator, type, backend) {
    if (!cell) { return []; }
    const [level, share, counts, title, failing] = cell;
    const link = document.createElement("a");
    link.className = `mark ${level}`;
    link.href = address(operator, type, backend, failing);
    link.title = title;
    const words = document.createElement("b");
    words.textContent = share;
    const small = document.createElement("small");
    small.textContent = counts;
    link.append(words, " ", small);
    return [link];
  }

  /* Show a row as the page has it, or of one type alone. */
  function showType(one, type) {
    if (one.type === type) { return; }
    const of = type ? (types[one.name] || {})[type] : null;
    one.cells.forEach((cell, i) => cell.replaceChildren(
      ...(type ? mark(of && of[i], one.name, type, backends[i]) : [one.links[i]].filter(Boolean))));
    one.type = type;
  }

  /* What there is to know of a cell, whether it is shown or not: its title, and whether anything fails. */
  function known(one, type, i) {
    if (!type) {
      const link = one.links[i];
      return link && { title: link.title, fails: link.getAttribute("href").includes("outcome=failed") };
    }
    const cell = ((types && types[one.name] || {})[type] || [])[i];
    return cell ? { title: cell[3], fails: Boolean(cell[4]) } : null;
  }

  function collapse(button) {
    const row = button.closest("tr");
    while (row.nextElementSibling && row.nextElementSibling.classList.contains("of-type")) {
      row.nextElementSibling.remove();
    }
    button.setAttribute("aria-expanded", "false");
  }

  async function expand(button) {
    await loaded();
    const row = button.closest("tr");
    const name = row.dataset.operator;
    const made = Object.entries((types && types[name]) || {}).map(([type, cells]) => {
      const line = document.createElement("tr");
      line.className = "of-type";
      const head = document.createElement("th");
      head.scope = "row";
      head.textContent = type;
      line.append(head, ...cells.map((cell, i) => {
        const place = document.createElement("td");
        place.hidden = heads[i].hidden;
        place.append(...mark(cell, name, type, backends[i]));
        return place;
      }));
      return line;
    });
    row.after(...made);
    button.setAttribute("aria-expanded", "true");
  }

  function values() {
    return Object.fromEntries(fields.map((name) => [name, form.elements[name].value.trim()]));
  }

  function told(given) {
    return { ...given, backend: given.backend === "" ? "" : backends[Number(given.backend)] };
  }

  async function narrow() {
    const given = values();
    const chosen = given.backend === "" ? -1 : Number(given.backend);
    if (given.type) { await loaded(); }
    table.querySelectorAll(".expand[aria-expanded=true]").forEach(collapse);
    const type = types ? given.type : "";
    const kept = rows.filter((one) => fits(one, given, type, chosen));
    hideColumns(chosen);
    show(kept, type);
    count.textContent = kept.length === rows.length
      ? `${kept.length} operator versions` : `${kept.length} of ${rows.length} operator versions`;
  }

  function fits(one, given, type, chosen) {
    return one.name.toLowerCase().includes(given.operator.toLowerCase())
      && (!given.standard || one.body.dataset.standard === given.standard)
      && (!type || backends.some((_, i) => known(one, type, i)))
      && (chosen < 0 || Boolean(known(one, type, chosen)))
      && (!given.outcome || occurs(given.outcome, one, type, chosen));
  }

  /* Show these rows: the first of them now, the others a few at a time while nothing else is to be done. */
  function show(kept, type) {
    busy(later);
    const first = new Set(kept.slice(0, AT_ONCE));
    for (const one of rows) { one.row.hidden = !first.has(one); }
    for (const one of first) { showType(one, type); }
    hideGroups();
    let shown = first.size;
    const more = (deadline) => {
      do {
        for (const one of kept.slice(shown, shown + 10)) {
          showType(one, type);
          one.row.hidden = false;
        }
        shown += 10;
      } while (shown < kept.length && deadline.timeRemaining() > 5);
      hideGroups();
      rest(more);
    };
    const rest = (work) => { if (shown < kept.length) { later = idle(work, { timeout: 200 }); } };
    whole = () => {
      busy(later);
      if (shown < kept.length) { more({ timeRemaining: () => Infinity }); }
    };
    rest(more);
  }

  /* Whether an outcome is there: in the row, or in what is shown of it. */
  function occurs(outcome, one, type, chosen) {
    if (chosen < 0 && !type) { return one.outcomes.includes(outcome); }
    const cells = chosen < 0 ? backends.map((_, i) => known(one, type, i)).filter(Boolean) : [known(one, type, chosen)];
    return cells.some((cell) => (outcome === "failed"
      ? cell.fails : cell.title.split(", ").some((words) => words.endsWith(` ${outcome}`))));
  }

  function hideColumns(chosen) {
    heads.forEach((head, i) => {
      const hidden = chosen >= 0 && i !== chosen;
      if (head.hidden === hidden) { return; }
      head.hidden = hidden;
      for (const one of rows) { one.cells[i].hidden = hidden; }
    });
  }

  function hideGroups() {
    const seen = new Set();
    const shown = new Set(rows.filter((one) => !one.row.hidden).map((one) => one.body));
    for (const body of bodies) {
      body.hidden = !shown.has(body);
      if (!body.hidden) { seen.add(body.dataset.standard); }
    }
    for (const body of table.querySelectorAll("tbody.standard")) { body.hidden = !seen.has(body.dataset.standard); }
  }

  function start() {
    const found = opconform.parameters();
    for (const name of fields) { form.elements[name].value = found.get(name) || ""; }
    form.elements.backend.value = found.has("backend") ? String(Math.max(backends.indexOf(found.get("backend")), -1)) : "";
    const changed = () => { opconform.setParameters(told(values())); narrow(); };
    form.addEventListener("input", changed);
    form.addEventListener("reset", () => setTimeout(changed));
    form.addEventListener("submit", (event) => event.preventDefault());
    table.addEventListener("click", (event) => {
      const button = event.target.closest(".expand");
      if (button) { (button.getAttribute("aria-expanded") === "true" ? collapse : expand)(button); }
    });
    window.addEventListener("beforeprint", () => whole());
    if (fields.some((name) => found.get(name))) { narrow(); }
  }

  start();
})();
