"use strict";
/* The page of one case, `case.html?id=…`; with a view's own words in the address, between its neighbours in the list. */
(function () {
  const { h } = window.opconformParts;
  const root = document.getElementById("case");

  const address = (view, id) => {
    const given = Object.entries(view).filter(([name, value]) => value && name !== "page");
    return `case.html?${new URLSearchParams([["id", id], ...given])}`;
  };

  async function neighbours(cases, number, view) {
    const list = cases.select(view, view.q ? await window.opconformCases.words() : null);
    const at = list.indexOf(number);
    const words = new URLSearchParams(Object.entries(view).filter(([, value]) => value));
    const to = (other, label, key) => (other === undefined ? h("span", { class: "button off" }, label)
      : h("a", { class: "button", href: address(view, cases.id(other)), rel: key, "data-key": key }, label));
    const count = list.length.toLocaleString("en");
    return h("nav", { class: "neighbours", "aria-label": "Cases" },
      h("a", { href: `cases.html${String(words) ? `?${words}` : ""}` }, at < 0 ? "All cases" : "List"),
      at < 0 ? null : [to(list[at - 1], "‹ Previous", "prev"), h("span", { class: "soft" },
        `${(at + 1).toLocaleString("en")} of ${count}`), to(list[at + 1], "Next ›", "next")]);
  }

  async function start() {
    const parameters = window.opconform.parameters();
    const cases = await window.opconformCases.load();
    const id = parameters.get("id") || "";
    const number = cases.find(id);
    if (number < 0) {
      root.replaceChildren(h("p", { class: "note" }, id ? "These runs have no case with the id " : "The URL has no case id: ",
        id ? h("code", null, id.slice(0, 500)) : h("a", { href: "cases.html" }, "choose one")));
      return;
    }
    document.title = `${id} · opconform`;
    const view = window.opconformCases.viewOf(parameters);
    await window.opconformCase.show(root, cases, number, await neighbours(cases, number, view));
  }

  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea, pre, .box")) { return; }
    const key = { ArrowLeft: "prev", ArrowRight: "next" }[event.key];
    const target = key && root.querySelector(`[data-key="${key}"]`);
    if (target) { target.click(); }
  });
  start().catch((error) => { root.replaceChildren(h("p", { class: "note" }, String(error.message))); });
})();
