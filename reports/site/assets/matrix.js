"use strict";
/* Filters of the matrix, kept in the address; rows by element type, from data that is loaded when it is asked for. */
(function () {
  const form = document.getElementById("filters");
  const table = document.getElementById("matrix");
  const fields = ["operator", "standard", "type", "backend", "outcome"];
  const heads = [...table.tHead.rows[0].cells].slice(1);
  const backends = heads.map((head) => head.dataset.backend);
  const rows = [...table.querySelectorAll("tr[data-operator]")].map((row) => ({
    row, name: row.dataset.operator, body: row.closest("tbody"), outcomes: row.dataset.outcomes.split(" "),
    cells: [...row.cells].slice(1), whole: null, type: "",
  }));
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
    one.whole = one.whole || one.cells.map((cell) => [...cell.childNodes]);
    const of = type ? (types[one.name] || {})[type] : null;
    one.cells.forEach((cell, i) => cell.replaceChildren(
      ...(type ? mark(of && of[i], one.name, type, backends[i]) : one.whole[i])));
    one.type = type;
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
    let shown = 0;
    for (const one of rows) {
      showType(one, types ? given.type : "");
      const cell = chosen < 0 ? null : one.cells[chosen].querySelector("a");
      one.row.hidden = !(
        one.name.toLowerCase().includes(given.operator.toLowerCase())
        && (!given.standard || one.body.dataset.standard === given.standard)
        && (!given.type || one.cells.some((place) => place.firstElementChild))
        && (chosen < 0 || cell)
        && (!given.outcome || occurs(given, one, chosen, cell)));
      shown += one.row.hidden ? 0 : 1;
    }
    hideColumns(chosen);
    hideGroups();
    count.textContent = shown === rows.length
      ? `${shown} operator versions` : `${shown} of ${rows.length} operator versions`;
  }

  /* Whether an outcome is there: in the row, or in what is shown of it. */
  function occurs(given, one, chosen, cell) {
    if (chosen < 0 && !given.type) { return one.outcomes.includes(given.outcome); }
    const links = chosen < 0 ? one.cells.map((place) => place.querySelector("a")).filter(Boolean) : [cell];
    return links.some((link) => (given.outcome === "failed"
      ? link.href.includes("outcome=failed")
      : link.title.split(", ").some((words) => words.endsWith(` ${given.outcome}`))));
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
    for (const body of table.querySelectorAll("tbody.operator")) {
      body.hidden = !body.querySelector("tr[data-operator]:not([hidden])");
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
    if (fields.some((name) => found.get(name))) { narrow(); }
  }

  start();
})();
