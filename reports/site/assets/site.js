"use strict";
/* What every page has: the theme, copy buttons, and rows that a search narrows; loaded before the page is drawn. */
(function () {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");

  function kept() {
    try { return localStorage.getItem("opconform-theme"); } catch { return null; }  // some browsers refuse it for local files
  }

  function apply(theme) {
    if (theme === "light" || theme === "dark") { root.dataset.theme = theme; } else { delete root.dataset.theme; }
    document.dispatchEvent(new CustomEvent("opconform-theme"));  // charts draw themselves again
  }

  /* The button switches to the other theme; where that is the system's, the page follows the system again. */
  function startTheme() {
    const button = document.getElementById("theme");
    const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
    const tell = () => {
      button.textContent = isDark() ? "Light theme" : "Dark theme";
      button.title = `Switch to the ${isDark() ? "light" : "dark"} theme`;
    };
    tell();
    dark.addEventListener("change", tell);
    button.addEventListener("click", () => {
      const next = isDark() ? "light" : "dark";
      const theme = (next === "dark") === dark.matches ? "system" : next;
      try { localStorage.setItem("opconform-theme", theme); } catch { /* it holds for this page */ }
      apply(theme);
      tell();
    });
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {  // a page from a file may not have the clipboard
      const area = document.createElement("textarea");
      area.value = text;
      area.style.position = "fixed";
      area.style.opacity = "0";
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }

  async function onCopy(event) {
    const button = event.target.closest("[data-copy]");
    if (!button) { return; }
    const words = button.dataset.label || (button.dataset.label = button.textContent);
    const done = await copy(document.getElementById(button.dataset.copy).textContent);
    button.textContent = done ? "Copied" : "Not copied";
    setTimeout(() => { button.textContent = words; }, 1500);
  }

  /* The parameters of the address, and their change without a new page; empty ones are left out. */
  function parameters() { return new URLSearchParams(location.search); }

  function setParameters(values) {
    const found = parameters();
    for (const [name, value] of Object.entries(values)) {
      found.delete(name);
      for (const one of Array.isArray(value) ? value : [value]) { if (one) { found.append(name, one); } }
    }
    const text = found.toString();
    history.replaceState(null, "", (text ? `?${text}` : location.pathname.split("/").pop()) + location.hash);
  }

  /* A search field `data-rows="#id"`: rows whose text has every word of it stay. Its name is its parameter. */
  function startSearch(field) {
    const rows = [...document.querySelectorAll(`${field.dataset.rows} [data-text]`)];
    const told = document.getElementById(field.dataset.count);
    const narrow = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      for (const row of rows) {
        row.hidden = !words.every((word) => row.dataset.text.toLowerCase().includes(word));
        count += row.hidden ? 0 : 1;
      }
      for (const group of document.querySelectorAll(`${field.dataset.rows} [data-group]`)) {
        group.hidden = !group.querySelector("[data-text]:not([hidden])");
      }
      if (told) { told.textContent = `${count} of ${rows.length}`; }
    };
    field.form.addEventListener("submit", (event) => event.preventDefault());
    field.value = parameters().get(field.name) || "";
    field.addEventListener("input", () => { setParameters({ [field.name]: field.value.trim() }); narrow(); });
    narrow();
  }

  /* Load a classic script once; a page from a file may fetch nothing else. */
  const loads = new Map();
  function load(source) {
    if (!loads.has(source)) {
      loads.set(source, new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = source;
        script.onload = resolve;
        script.onerror = () => { loads.delete(source); reject(new Error(`${source}: could not be loaded`)); };
        document.head.append(script);
      }));
    }
    return loads.get(source);
  }

  /* The search of every page: backends and operator versions by their names, and cases by any word. */
  function startFind(field) {
    const list = document.getElementById("found");
    const base = field.dataset.root;
    const SHOWN = 8;
    let known = null;
    opconform.takeSearch = (backends, operators) => { known = { backends, operators }; };
    const rank = (name, words) => {
      const own = name.toLowerCase().split("/").pop();
      return own === words[0] || own.startsWith(`${words[0]}-`) ? 0 : own.startsWith(words[0]) ? 1 : 2;
    };
    const matches = (words) => {
      const fits = ([name]) => words.every((word) => name.toLowerCase().includes(word));
      const operators = known.operators.filter(fits).reverse();  // newest version first
      operators.sort((a, b) => rank(a[0], words) - rank(b[0], words));
      return [...known.backends.filter(fits), ...operators];
    };
    const entry = (text, href) => {
      const link = document.createElement("a");
      link.href = href;
      link.textContent = text;
      const item = document.createElement("li");
      item.append(link);
      return item;
    };
    const show = async () => {
      const text = field.value.trim();
      const words = text.toLowerCase().split(/\s+/).filter(Boolean);
      if (words.length) { await load(`${base}data/search.js`).catch(() => {}); }
      if (text !== field.value.trim()) { return; }  // the text has changed since
      const found = words.length && known ? matches(words) : [];
      const newest = new Map([...found].reverse().map((one) => [one[0].replace(/-\d+$/, ""), one]));
      const few = found.length > SHOWN ? found.filter((one) => newest.get(one[0].replace(/-\d+$/, "")) === one) : found;
      const items = few.slice(0, SHOWN).map(([name, path]) => entry(name, base + path));
      if (found.length > SHOWN) {
        items.push(entry(`All ${found.length} in the matrix`, `${base}matrix.html?${new URLSearchParams({ operator: words[0] })}`));
      }
      if (words.length) { items.push(entry(`Cases with "${text}"`, `${base}cases.html?${new URLSearchParams({ q: text })}`)); }
      list.replaceChildren(...items);
      list.hidden = !items.length;
    };
    const step = (event, by) => {
      const links = [...list.querySelectorAll("a")];
      const next = links.indexOf(document.activeElement) + by;
      if (links.length) { event.preventDefault(); (links[next] || field).focus(); }
    };
    field.addEventListener("input", show);
    field.addEventListener("focus", () => load(`${base}data/search.js`).catch(() => {}));
    field.form.addEventListener("submit", (event) => {
      const first = list.querySelector("a");
      if (first && !list.hidden) { event.preventDefault(); location.href = first.href; }
    });
    field.form.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") { step(event, 1); }
      if (event.key === "ArrowUp") { step(event, -1); }
      if (event.key === "Escape") { list.hidden = true; field.focus(); }
    });
    field.form.addEventListener("focusout", (event) => {
      if (!field.form.contains(event.relatedTarget)) { list.hidden = true; }
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.target.closest("input, select, textarea")) {
        event.preventDefault();
        field.focus();
      }
    });
  }

  // The marks of a table link to lists of cases: what its table, row and column, and the mark itself ask for.
  const linkMarks = (table) => {
    const columns = table.tHead.rows[0].cells;
    for (const mark of table.querySelectorAll("td > a.mark:not([href])")) {
      const cell = mark.parentElement;
      const asked = [table, cell.parentElement, columns[cell.cellIndex], mark].map((one) => one.dataset.cases);
      mark.href = `../cases.html?${asked.filter(Boolean).join("&")}`;
    }
  };

  window.opconform = Object.assign(window.opconform || {}, { parameters, setParameters, load, copy });
  apply(kept());
  document.addEventListener("click", onCopy);
  document.addEventListener("DOMContentLoaded", () => {
    startTheme();
    startFind(document.getElementById("find"));
    document.querySelectorAll("input[data-rows]").forEach(startSearch);
    document.querySelectorAll("table[data-cases]").forEach(linkMarks);
  });
})();
