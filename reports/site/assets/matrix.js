"use strict";
/* Filters and columns of the matrix, kept in the address; families that fold; rows by element type, from data that is
   loaded when it is asked for. */
(function () {
  const form = document.getElementById("filters");
  const table = document.getElementById("matrix");
  const fields = ["operator", "standard", "type", "outcome"];
  const heads = [...table.tHead.rows[0].cells].slice(1);
  const backends = heads.map((head) => head.dataset.backend);
  const boxes = [...form.querySelectorAll(".choose input")];
  const differ = form.elements.differ;
  const rows = [...table.querySelectorAll("tr[data-operator]")].map((row) => {
    const cells = [...row.cells].slice(1);
    const links = cells.map((cell) => cell.querySelector("a"));
    return {
      row, cells, links, name: row.dataset.operator, body: row.closest("tbody"), family: row.closest("tbody").dataset.family,
      outcomes: row.dataset.outcomes.split(" "), type: "",
    };
  });
  const idle = window.requestIdleCallback
    || ((work) => setTimeout(() => work({ timeRemaining: () => 0 }), 30));
  const busy = window.cancelIdleCallback || clearTimeout;
  const families = [...table.querySelectorAll("tbody.family")].map((body) => (
    { body, key: body.dataset.family, button: body.querySelector(".fold"), cells: [...body.rows[0].cells].slice(1) }));
  const folded = new Set();
  const foldAll = document.getElementById("fold");
  const folds = families.length > 1 && rows.length > 60;  // a matrix longer than a page opens folded
  const AT_ONCE = 60;  // rows that a filter shows before the page is drawn; laying out thousands of cells takes a second
  let later = 0;
  let whole = () => {};  // shows the remaining rows
  const bodies = [...table.querySelectorAll("tbody.operator")];
  const count = document.getElementById("count");
  let types = null;
  opconform.takeMatrix = (told) => { types = told; };
  const loaded = () => opconform.load("data/matrix.js").catch((error) => { count.textContent = error.message; });

  const every = () => backends.map((_, i) => i);

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

  /* What there is to know of a cell, whether it is shown or not: its title, what it says, and whether anything fails. */
  function known(one, type, i) {
    if (!type) {
      const link = one.links[i];
      return link && {
        title: link.title, says: link.className + link.querySelector("b").textContent,
        fails: link.getAttribute("href").includes("outcome=failed"),
      };
    }
    const cell = ((types && types[one.name] || {})[type] || [])[i];
    return cell ? { title: cell[3], says: cell[0] + cell[1], fails: Boolean(cell[4]) } : null;
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
    const given = Object.fromEntries(fields.map((name) => [name, form.elements[name].value.trim()]));
    const chosen = boxes.filter((box) => box.checked).map((box) => Number(box.value));
    return { ...given, chosen: chosen.length ? chosen : every(), differ: Boolean(differ && differ.checked) };
  }

  const isWhole = (given) => given.chosen.length === backends.length;
  const isFiltered = (given) => given.differ || !isWhole(given) || fields.some((name) => given[name]);

  function told(given) {
    const { chosen, ...rest } = given;
    return { ...rest, differ: given.differ ? "1" : "", backend: isWhole(given) ? "" : chosen.map((i) => backends[i]) };
  }

  async function narrow() {
    const given = values();
    if (given.type) { await loaded(); }
    table.querySelectorAll(".expand[aria-expanded=true]").forEach(collapse);
    const type = types ? given.type : "";
    const kept = rows.filter((one) => fits(one, given, type));
    hideColumns(given);
    const inside = new Set(kept.map((one) => one.family));
    for (const one of families) {
      one.body.hidden = !inside.has(one.key);
      one.button.setAttribute("aria-expanded", String(!folded.has(one.key)));
    }
    table.classList.toggle("of-one-type", Boolean(type));
    foldAll.textContent = folded.size ? "Unfold all" : "Fold all";
    show(kept.filter((one) => !folded.has(one.family)), type, inside);
    count.textContent = kept.length === rows.length
      ? `${kept.length} operator versions` : `${kept.length} of ${rows.length} operator versions`;
  }

  function fits(one, given, type) {
    const cells = given.chosen.map((i) => known(one, type, i)).filter(Boolean);
    return one.name.toLowerCase().includes(given.operator.toLowerCase())
      && (!given.standard || one.body.dataset.standard === given.standard)
      && cells.length > 0
      && (!given.outcome || occurs(given, one, type, cells))
      && (!given.differ || new Set(cells.map((cell) => cell.says)).size > 1);
  }

  /* Show these rows: the first of them now, the others a few at a time while nothing else is to be done. */
  function show(kept, type, inside) {
    busy(later);
    const first = new Set(kept.slice(0, AT_ONCE));
    for (const one of rows) { one.row.hidden = !first.has(one); }
    for (const one of first) { showType(one, type); }
    hideGroups(inside);
    let shown = first.size;
    const more = (deadline) => {
      do {
        for (const one of kept.slice(shown, shown + 10)) {
          showType(one, type);
          one.row.hidden = false;
        }
        shown += 10;
      } while (shown < kept.length && deadline.timeRemaining() > 5);
      hideGroups(inside);
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
  function occurs(given, one, type, cells) {
    const { outcome } = given;
    if (isWhole(given) && !type) { return one.outcomes.includes(outcome); }
    return cells.some((cell) => (outcome === "failed"
      ? cell.fails : cell.title.split(", ").some((words) => words.endsWith(` ${outcome}`))));
  }

  /* Show the chosen backends that ran anything of the standard; the others would have an empty column. */
  function hideColumns(given) {
    const listed = rows.filter((one) => !given.standard || one.body.dataset.standard === given.standard);
    const shown = given.chosen.filter((i) => !given.standard || listed.some((one) => one.links[i]));
    heads.forEach((head, i) => {
      const hidden = !shown.includes(i);
      if (head.hidden === hidden) { return; }
      head.hidden = hidden;
      for (const one of [...rows, ...families]) { one.cells[i].hidden = hidden; }
    });
    table.style.setProperty("--columns", shown.length);
    for (const head of table.querySelectorAll("tr.group th")) { head.colSpan = shown.length + 1; }
    const label = document.getElementById("columns");
    if (label) {
      label.textContent = isWhole(given) ? `All ${backends.length} backends` : given.chosen.length === 1
        ? backends[given.chosen[0]] : `${given.chosen.length} of ${backends.length} backends`;
    }
  }

  function hideGroups(inside) {
    const shown = new Set(rows.filter((one) => !one.row.hidden).map((one) => one.body));
    for (const body of bodies) { body.hidden = !shown.has(body); }
    const seen = new Set(families.filter((one) => inside.has(one.key)).map((one) => one.body.dataset.standard));
    for (const body of table.querySelectorAll("tbody.standard")) { body.hidden = !seen.has(body.dataset.standard); }
  }

  function setFolded(all) {
    folded.clear();
    if (all) { for (const one of families) { folded.add(one.key); } }
  }

  function changed() {
    const given = values();
    opconform.setParameters(told(given));
    setFolded(folds && !isFiltered(given));
    narrow();
  }

  function start() {
    const found = opconform.parameters();
    for (const name of fields) { form.elements[name].value = found.get(name) || ""; }
    const named = found.getAll("backend").filter((name) => backends.includes(name));
    for (const box of boxes) { box.checked = !named.length || named.includes(backends[Number(box.value)]); }
    if (differ) { differ.checked = found.has("differ"); }
    form.addEventListener("input", changed);
    form.addEventListener("reset", () => setTimeout(changed));
    form.addEventListener("submit", (event) => event.preventDefault());
    table.addEventListener("click", (event) => {
      const button = event.target.closest(".expand");
      if (button) { (button.getAttribute("aria-expanded") === "true" ? collapse : expand)(button); }
    });
    foldAll.hidden = families.length < 2;
    foldAll.addEventListener("click", () => { setFolded(!folded.size); narrow(); });
    for (const one of families) {
      one.button.disabled = false;
      one.button.addEventListener("click", () => {
        if (!folded.delete(one.key)) { folded.add(one.key); }
        narrow();
      });
    }
    window.addEventListener("beforeprint", () => {
      if (folded.size) { setFolded(false); narrow(); }
      whole();
    });
    const filtered = isFiltered(values());
    setFolded(folds && !filtered);
    if (filtered || folded.size) { narrow(); } else { foldAll.textContent = "Fold all"; }
  }

  start();
})();
