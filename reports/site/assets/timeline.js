"use strict";
/* Filters of the timeline, kept in the address: a part of an operator's name, and only what changed. */
(function () {
  const form = document.getElementById("filters");
  const rows = [...document.querySelectorAll("#timeline tr[data-operator]")];
  const count = document.getElementById("count");
  const all = count.textContent;

  function narrow() {
    const operator = form.elements.operator.value.trim().toLowerCase();
    const changed = form.elements.changed.checked;
    let shown = 0;
    for (const row of rows) {
      row.hidden = !row.dataset.operator.toLowerCase().includes(operator) || (changed && !("changed" in row.dataset));
      shown += row.hidden ? 0 : 1;
    }
    for (const body of document.querySelectorAll("#timeline tbody")) { body.hidden = !body.querySelector("tr:not([hidden])"); }
    count.textContent = shown === rows.length ? all : `${shown} of ${rows.length} operator versions`;
  }

  const found = opconform.parameters();
  form.elements.operator.value = found.get("operator") || "";
  if (found.has("all")) { form.elements.changed.checked = false; }
  form.addEventListener("input", () => {
    opconform.setParameters({ operator: form.elements.operator.value.trim(), all: form.elements.changed.checked ? "" : "1" });
    narrow();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  narrow();
})();
