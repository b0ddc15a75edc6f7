"use strict";
/* The list of all cases, unpacked into typed arrays and filtered there; details and backends' words when asked for. */
(function () {
  const given = new Map();  // data that scripts have passed: name to base64
  window.opconformData = (name, text) => { given.set(name, text); };

  async function bytes(name) {
    await window.opconform.load(`data/cases/${name}.js`);
    const binary = atob(given.get(name));
    const content = Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
    const stream = new Blob([content]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  const asJson = (content) => JSON.parse(new TextDecoder().decode(content));
  const once = new Map();
  function json(name) {
    if (!once.has(name)) { once.set(name, bytes(name).then(asJson)); }
    return once.get(name);
  }

  const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array };
  const PARTS = ["operator", "types", "shapes", "settings", "fill", "edge"];
  const NONE = 255;
  /* From the worst on: the order in which a column of outcomes is sorted. */
  const ORDER = ["crash", "timeout", "runner-error", "wrong-value", "wrong-shape", "wrong-dtype", "error",
    "accepted-invalid", "waived", "unsupported", "pass"];

  /* A table as case_packing.py lays it out: length of the head, head, columns. */
  function table(content) {
    const length = new DataView(content.buffer).getUint32(0, true);
    const head = asJson(content.subarray(4, 4 + length));
    const columns = {};
    for (const [name, [type, offset, count]] of Object.entries(head.columns)) {
      columns[name] = new TYPES[type](content.buffer, 4 + length + offset, count);
    }
    return { head, columns };
  }

  function matcher(pattern, known) {
    if (known.includes(pattern)) { return (word) => word === pattern; }
    if (/[*?[]/.test(pattern)) {
      const source = pattern.replace(/[.+^${}()|\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".")
        .replace(/\[!/g, "[^");
      try {
        const expression = new RegExp(`^${source}$`, "s");
        return (word) => expression.test(word);
      } catch { /* an unclosed bracket means itself */ }
    }
    const small = pattern.toLowerCase();
    return (word) => word.toLowerCase().includes(small);
  }

  class Cases {
    constructor({ head, columns }) {
      this.head = head;
      this.count = head.count;
      this.columns = columns;
      this.backends = head.backends.map((backend, place) => ({
        ...backend, place, outcomes: columns[`outcome-${place}`], failing: columns[`failing-${place}`],
      }));
      this.outcomes = head.outcomes;
    }

    id(number) {
      const parts = [];
      for (const part of PARTS) {
        const word = this.word(part, number);
        if (word) { parts.push(word); }
      }
      return parts.join("/");
    }

    word(part, number) { return this.head.words[part][this.columns[part][number]]; }

    outcome(backend, number) {
      const code = backend.outcomes[number];
      return code === NONE ? null : this.outcomes[code];
    }

    fails(backend, number) { return (backend.failing[number >> 3] >> (number & 7) & 1) === 1; }

    clauses(number) { return this.head.tested[this.columns.clauses[number]].map((place) => this.head.clauses[place]); }

    page(number) { return this.head.pages[this.columns.operator[number]]; }

    /* The number of a case by its id, -1 if there is none; ids are put together for likely ones only. */
    find(id) {
      const { words } = this.head;
      const operator = words.operator.map((word) => id === word || id.startsWith(`${word}/`));
      const { operator: operators } = this.columns;
      for (let number = 0; number < this.count; number++) {
        if (operator[operators[number]] && this.id(number) === id) { return number; }
      }
      return -1;
    }

    reproduce(backend, number) {
      return this.head.reproduce[backend.place].replace("{case}", () => `'${this.id(number)}'`);
    }

    async details(number) {
      const chunk = this.columns.chunk[number];
      if (!chunk) { return null; }
      const told = await json(`chunk-${chunk}`);
      const place = told.cases.indexOf(number);
      return { ...told.details[place], script: told.scripts[place] };
    }

    /* The numbers of the cases that a view shows, in its order. `words` are the backends' own, null until loaded. */
    select(view, words) {
      const allowed = this.allowed(view, words);
      const found = new Uint32Array(this.count);
      let size = 0;
      for (let number = 0; number < this.count; number++) {
        if (allowed(number)) { found[size++] = number; }
      }
      return this.sorted(found.subarray(0, size), view);
    }

    allowed(view, words) {
      const tests = [];
      const byWord = (part, test) => {
        const fits = Uint8Array.from(this.head.words[part], (word) => (test(word) ? 1 : 0));
        const column = this.columns[part];
        tests.push((number) => fits[column[number]] === 1);
      };
      if (view.operator) { byWord("operator", matcher(view.operator, this.head.words.operator)); }
      if (view.standard) { byWord("operator", (word) => word.startsWith(`${view.standard}/`)); }
      if (view.type) { byWord("types", (word) => word === view.type || word.split(",").includes(view.type)); }
      if (view.clause) { tests.push(this.byClause(view.clause)); }
      const backends = view.backend ? this.backends.filter((one) => one.key === view.backend) : this.backends;
      if (view.backend || view.outcome) { tests.push(this.byOutcome(view.outcome, backends)); }
      if (view.differ) { tests.push((number) => this.differ(number)); }
      if (view.q) { tests.push(this.byText(view.q.toLowerCase(), words)); }
      return (number) => tests.every((test) => test(number));
    }

    byClause(wanted) {
      const fits = this.head.clauses.map((clause) => clause === wanted || clause.split("#")[1] === wanted);
      const sets = Uint8Array.from(this.head.tested, (tested) => (tested.some((place) => fits[place]) ? 1 : 0));
      return (number) => sets[this.columns.clauses[number]] === 1;
    }

    byOutcome(outcome, backends) {
      if (outcome === "failed") { return (number) => backends.some((one) => this.fails(one, number)); }
      if (outcome === "not-run") { return (number) => backends.some((one) => one.outcomes[number] === NONE); }
      const code = outcome ? this.outcomes.indexOf(outcome) : -1;
      if (!outcome) { return (number) => backends.some((one) => one.outcomes[number] !== NONE); }
      return (number) => backends.some((one) => one.outcomes[number] === code);
    }

    differ(number) {
      let first = NONE;
      for (const { outcomes } of this.backends) {
        const code = outcomes[number];
        if (code === NONE || code === first) { continue; }
        if (first !== NONE) { return true; }
        first = code;
      }
      return false;
    }

    byText(text, words) {
      this.small = this.small || Array.from({ length: this.count }, (_, number) => this.id(number).toLowerCase());
      const said = new Uint8Array(this.count);
      if (words) {
        const fits = words.texts.map((one) => one.toLowerCase().includes(text));
        for (const { cases, texts } of words.backends) {
          let number = 0;
          cases.forEach((step, place) => { number += step; if (fits[texts[place]]) { said[number] = 1; } });
        }
      }
      return (number) => said[number] === 1 || this.small[number].includes(text);
    }

    sorted(found, view) {
      if (!view.sort) { return found; }
      const down = view.sort.startsWith("-");
      const rank = this.ranks(down ? view.sort.slice(1) : view.sort);
      if (!rank) { return found; }
      const sign = down ? -1 : 1;
      return found.slice().sort((one, other) => sign * (rank(one) - rank(other)) || one - other);
    }

    ranks(name) {
      const place = /^b(\d+)$/.exec(name);
      if (place && this.backends[place[1]]) {
        const { outcomes } = this.backends[place[1]];
        const order = this.outcomes.map((outcome) => ORDER.indexOf(outcome));
        return (number) => (outcomes[number] === NONE ? ORDER.length : order[outcomes[number]]);
      }
      if (!PARTS.includes(name)) { return null; }
      const words = this.head.words[name];
      const compare = new Intl.Collator("en", { numeric: true }).compare;
      const order = new Uint32Array(words.length);
      words.map((_, place_) => place_).sort((a, b) => compare(words[a], words[b])).forEach((w, n) => { order[w] = n; });
      return (number) => order[this.columns[name][number]];
    }

    /* Failures that seem to have one cause, as the terminal tells them; the most frequent first. */
    kinds(numbers, words) {
      const shown = new Uint8Array(this.count);
      for (const number of numbers) { shown[number] = 1; }
      const found = new Map();
      words.backends.forEach(({ cases: steps, texts, kinds }, place) => {
        let number = 0;
        steps.forEach((step, at) => {
          number += step;
          if (kinds[at] < 0 || !shown[number]) { return; }
          const kind = found.get(kinds[at]);
          if (kind) { kind.count += 1; return; }
          found.set(kinds[at], { backend: this.backends[place], number, count: 1, said: words.texts[texts[at]] || "" });
        });
      });
      return [...found.values()].sort((one, other) => other.count - one.count);
    }
  }

  /* The view in the URL; the same keys as in the links that `opconform report` writes. */
  const VIEW = ["operator", "standard", "type", "outcome", "backend", "clause", "q", "differ", "sort", "view", "page"];
  function viewOf(parameters) {
    return Object.fromEntries(VIEW.map((name) => [name, parameters.get(name) || ""]));
  }

  let cases = null;
  window.opconformCases = {
    NONE, PARTS, VIEW, viewOf,
    load() { return cases || (cases = bytes("index").then((content) => new Cases(table(content)))); },
    words: () => json("words"),
  };
})();
