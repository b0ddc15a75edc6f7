"use strict";
/* What every page has: the theme, copy buttons, and rows that a search narrows; loaded before the page is drawn. */
(function () {
  const root = document.documentElement;
  const themes = ["system", "light", "dark"];
  const labels = { system: "System", light: "Light", dark: "Dark" };

  function kept() {
    try { return localStorage.getItem("opconform-theme"); } catch { return null; }  // refused from some files
  }

  function apply(theme) {
    if (theme === "light" || theme === "dark") { root.dataset.theme = theme; } else { delete root.dataset.theme; }
    document.dispatchEvent(new CustomEvent("opconform-theme"));  // charts draw themselves again
  }

  function startTheme() {
    const button = document.getElementById("theme");
    let theme = themes.includes(kept()) ? kept() : "system";
    const tell = () => {
      button.textContent = labels[theme];
      button.setAttribute("aria-label", `Theme: ${labels[theme]}`);
    };
    tell();
    button.addEventListener("click", () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
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
      if (value) { found.set(name, value); } else { found.delete(name); }
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

  window.opconform = Object.assign(window.opconform || {}, { parameters, setParameters, load, copy });
  apply(kept());
  document.addEventListener("click", onCopy);
  document.addEventListener("DOMContentLoaded", () => {
    startTheme();
    document.querySelectorAll("input[data-rows]").forEach(startSearch);
  });
})();
