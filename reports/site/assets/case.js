"use strict";
/* One case in full: a page of its own, and a pane beside the list of cases. */
(function () {
  const { h, mark, copyButton, command, folded, tensor, bounds, mismatches, heatMap, histogram, notate, shapeText,
    asText } = window.opconformParts;

  function head(cases, number) {
    const id = cases.id(number);
    return [
      h("div", { class: "case-id" }, h("code", { class: "id" }, id), copyButton("Copy id", () => id)),
      h("p", { class: "soft" }, h("a", { href: cases.page(number) }, cases.word("operator", number)),
        ` · ${cases.word("types", number)} · ${cases.word("shapes", number)}`),
    ];
  }

  /* Each backend with its outcome and its own words. */
  function outcomes(cases, number, details) {
    const told = new Map((details ? details.results : []).map((result) => [result.backend, result]));
    const ran = cases.backends.filter((backend) => cases.outcome(backend, number) !== null);
    const others = cases.backends.filter((backend) => !ran.includes(backend)).map((backend) => backend.name);
    const rows = ran.map((backend) => {
      const result = told.get(backend.place);
      return h("tr", { class: cases.fails(backend, number) ? "fails" : null },
        h("th", { scope: "row" }, backend.name, " ", h("small", null, backend.version)),
        h("td", null, mark(cases.outcome(backend, number))), h("td", null, words(result)));
    });
    return [h("div", { class: "box" }, h("table", { class: "outcomes" }, h("thead", null, h("tr", null,
      ["backend", "outcome", "message"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", null, rows))),
    others.length ? h("p", { class: "soft small" }, `Not run on ${others.join(", ")}.`) : null];
  }

  function words(result) {
    if (!result) { return null; }
    const facts = [];
    for (const [silence, options] of Object.entries(result.behaviour)) {
      if (options.length) { facts.push(`${silence}: ${options.join(" or ")}`); }
    }
    if (result.level === "declared") { facts.push("admitted only by declared arithmetic"); }
    if (result.accuracy) { facts.push(`accuracy: ${result.accuracy.grade}`); }
    if (result.accuracy && result.accuracy.ulp !== null) { facts.push(`largest error ${asText(result.accuracy.ulp)} ulp`); }
    if (result.share !== null) { facts.push(`${asText(result.share)} of the bound`); }
    if (result.reason) { facts.push(`reason: ${result.reason}`); }
    const said = result.detail && result.difference ? result.detail.split("\n")[0] : result.detail;  // the rest follows
    return [said ? h("p", { class: "said", tabindex: said.length > 300 ? "0" : null }, said) : null,
      facts.length ? h("p", { class: "soft small" }, facts.join(" · ")) : null];
  }

  /* What a backend answered, held against what it comes nearest to. */
  function answers(cases, details) {
    return details.results.filter((result) => result.answer || result.not_kept).map((result) => {
      const name = cases.backends[result.backend].name;
      const title = h("h2", { class: "answer-title" }, name, " ", mark(result.outcome));
      if (!result.answer) { return h("section", null, title, h("p", { class: "soft" }, `Its answer: ${result.not_kept}`)); }
      const parts = result.difference ? result.difference.outputs.map((told, at) => apart(told, result.answer[at],
        name + (result.answer.length > 1 ? `, ${told.name || `output ${at + 1}`}` : "")))
        : [h("p", { class: "soft" }, details.options ? "No admissible answer has this shape and type." : "")];
      return h("section", { class: "answer" }, title, parts.flat(),
        folded(`The whole answer: ${result.answer.map((one) => `${one.type} ${shapeText(one.shape)}`).join(", ")}`,
          () => result.answer.map((one) => tensor(one, `The answer of ${name}`)).flat().filter(Boolean), !result.difference));
    });
  }

  function apart(told, output, name) {
    const told_words = [`${told.wrong.toLocaleString("en")} of ${told.size.toLocaleString("en")} elements wrong`];
    if (told.float) {
      told_words.push(`largest error ${asText(told.ulp)} ulp`);
      if (told.share) { told_words.push(`${asText(told.share)} of the bound`); }
    }
    return [
      h("p", { class: "verdict-line" }, told_words.join(" · ")),
      told.wrong ? mismatches(told, output, `First mismatches of ${name}`) : null,
      told.size > 1 ? h("div", { class: "charts" }, heatMap(told, output.shape), told.float && told.histogram.steps.length > 1 ? histogram(told) : null) : null,
    ].flat();
  }

  function reproduce(cases, number, details) {
    const id = cases.id(number);
    const failing = cases.backends.filter((backend) => cases.fails(backend, number));
    const named = failing.length ? failing : cases.backends;
    const lines = [...new Map(named.map((backend) => [cases.reproduce(backend, number), backend])).entries()];
    const script = details && details.script;
    return [
      lines.map(([line, backend]) => [h("p", { class: "soft small label" }, lines.length > 1 || failing.length
        ? backend.name : "any backend"), command(line)]).flat(),
      script ? h("p", null, copyButton("Copy script", () => script)) : null,
      script ? h("details", null, h("summary", null, "The script, as opconform show --script prints it"),
        h("div", { class: "script" }, h("pre", { tabindex: "0" }, script)))
        : [h("p", { class: "soft small label" }, "A script"), command(`opconform show --script '${id}'`)],
    ].flat();
  }

  function clauses(details, cases, number) {
    if (!details || !details.clauses) {
      return h("ul", null, cases.clauses(number).map((clause) => h("li", null, h("code", null, clause))));
    }
    return h("ul", { class: "clauses" }, details.clauses.map((clause) => h("li", null, h("code", null,
      clause.id.split("#")[1]), " ", clause.text, " ", clause.status === "required" ? null : h("span", { class: "tag" },
      clause.status), " ", link(clause.source, "source"), clause.upstream ? [" ", link(clause.upstream, "upstream")] : null)));
  }

  const link = (address, label) => (/^https?:/.test(address) ? h("a", { href: address, rel: "noreferrer" }, label)
    : h("span", { class: "soft" }, address || ""));

  function inputs(details) {
    return details.inputs.map((one) => h("section", null, h("h3", null, one.name, " ", h("span", { class: "tag" },
      `${one.type} ${shapeText(one.shape)}`), one.constant ? h("span", { class: "tag" }, "constant") : null,
    one.dims ? h("span", { class: "tag" }, `declared ${one.dims.join("×")}`) : null),
    tensor(one, `Elements of ${one.name}`))).flat();
  }

  function expected(details, cases) {
    const nearest = new Set(details.results.map((result) => result.difference && result.difference.option));
    if (!details.options.length) {
      return [h("p", null, "The input is invalid: no answer is right, a refusal is welcome."), details.mended
        ? h("p", null, "It was made from ", caseLink(details.mended), ".") : null];
    }
    const only = details.options.length === 1;
    return details.options.map((option, at) => {
      const content = () => option.outputs.map((one, out) => bounds(one, `Admitted: option ${at + 1}, ${one.name || `output ${out + 1}`}`))
        .flat().filter(Boolean);
      const title = optionTitle(option) + (nearest.has(at) && !only ? " (nearest to an answer)" : "");
      if (only) { return [h("p", null, title), ...content()]; }
      return option.outputs.length ? folded(title, content, nearest.size > 1 ? nearest.has(at) : at === 0)
        : h("p", { class: "option" }, title);
    }).flat();
  }

  /* What inferencers and checkers have to say. */
  function ofTools(details) {
    const titles = { infer: "Types and shapes", check: "Validity" };
    return (details.tools || []).filter((one) => one.lines.length).map((one) => section(titles[one.kind],
      h("pre", { tabindex: "0" }, one.lines.join("\n")),
      one.kind === "infer" ? h("p", { class: "soft" }, "N?: may be unknown or N. N|M: either. *: computed, so only "
        + "unknown is right.") : null));
  }

  function optionTitle(option) {
    const labels = Object.entries(option.labels).map(([silence, answer]) => `${silence}: ${answer}`).join(", ");
    const kind = { rejected: "a refusal", anything: "any answer", values: "" }[option.kind];
    const level = option.level === "declared" ? "only under declared arithmetic" : "";
    return [labels || "The one answer that the standard admits", kind, level].filter(Boolean).join(" — ");
  }

  const caseLink = (id) => h("a", { class: "id", href: `case.html?${new URLSearchParams({ id })}` }, id);

  function proof(details) {
    const found = [];
    const { certificate, derivation } = details;
    if (derivation && derivation.length) { found.push(h("pre", { tabindex: "0" }, derivation.join("\n"))); }
    if (!derivation && !details.why) { found.push(h("p", { class: "soft" }, "To print its derivation:")); }
    if (certificate) {
      found.push(h("details", null, h("summary", null, "Certificate: everything needed to judge an answer, as JSON"),
        h("div", { class: "script" }, copyButton("Copy certificate", () => certificate),
          h("pre", { tabindex: "0" }, pretty(certificate)))));
    } else if (!details.why) { found.push(command(`opconform show --certificate '${details.id}'`)); }
    return found;
  }

  function pretty(text) {
    try { return JSON.stringify(JSON.parse(text), null, 1); } catch { return text; }
  }

  const section = (title, ...content) => h("section", { class: "part" }, h("h2", null, title), ...content.flat()
    .filter(Boolean));

  function notation(root) {
    const names = [["decimal", "decimal"], ["exact", "exact"], ["hex", "hexadecimal"]];
    const select = h("select", null, names.map(([value, label]) => h("option", { value }, label)));
    const keep = () => notate(root, select.value);
    select.addEventListener("change", keep);
    root.addEventListener("toggle", keep, true);
    return h("label", { class: "notation" }, "numbers ", select);
  }

  function without(cases, number, details) {
    const why = details && details.why ? `No details: ${details.why}.`
      : cases.head.corpus ? "No details: the cases of this run came from files."
      : `No details here: with more than ${cases.head.few.toLocaleString("en")} cases, only failing ones have details, `
        + `at most ${cases.head.most.toLocaleString("en")}. To print them:`;
    return [h("p", { class: "note" }, why), command(`opconform show '${cases.id(number)}'`)];
  }

  /* Fill an element with all there is of a case. */
  async function show(root, cases, number, navigation) {
    root.setAttribute("aria-busy", "true");
    const details = await cases.details(number);
    const full = Boolean(details && details.options);
    const body = [
      navigation,
      head(cases, number),
      outcomes(cases, number, details),
      full ? null : without(cases, number, details),
      details ? answers(cases, details) : null,
      section("Reproduce", reproduce(cases, number, details)),
      section("What it tests", clauses(details, cases, number)),
      full ? section("Operation", h("pre", { tabindex: "0" }, details.operation.join("\n"))) : null,
      full ? section("Inputs", inputs(details)) : null,
      full ? ofTools(details) : null,
      full && details.runs !== false ? section("Admitted", expected(details, cases)) : null,
      details && details.runs === false ? null : full || details && details.certificate ? section("Derivation", proof(details)) : null,
    ];
    const content = body.flat(3).filter(Boolean);
    if (full) { content.splice(navigation ? 1 : 0, 0, notation(root)); }
    root.replaceChildren(...content);
    root.removeAttribute("aria-busy");
  }

  window.opconformCase = { show };
})();
