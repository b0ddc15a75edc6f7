"use strict";
/* Charts of the page of trends; the table below each of them has the same figures. */
(function () {
  const HEIGHT = 190, LEFT = 46, RIGHT = 18;
  let told = [];

  function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

  function day(point) { return point.date.toISOString().slice(0, 10); }

  function share(value) { return value === null ? "none" : `${Math.floor(value * 100) / 100}%`; }

  function words(point) {
    return `run ${point.run}, ${day(point)}\nversion ${point.version}, suite ${point.suite}\n`
      + `correctness ${share(point.correctness)}\nsupport ${share(point.support)}\nfailures ${point.failures}`;
  }

  function name(point) { return point.version.slice(0, 14); }

  /* The points whose versions are named, with their anchors: the newest first, each where there is room for it. */
  function named(points, width) {
    const first = +points[0].date, span = Math.max(1, points[points.length - 1].date - first);
    let free = width;
    const found = [];
    for (const point of points.filter((one, index) => one.other || index === 0).reverse()) {
      const x = LEFT + (point.date - first) / span * (width - LEFT - RIGHT), size = 7 * name(point).length + 6;
      const anchor = x + size / 2 > width ? "end" : point === points[0] ? "start" : "middle";
      const from = x - size * { start: 0, middle: 0.5, end: 1 }[anchor];
      if (from < 0 || from + size > free) { continue; }
      free = from;
      found.push({ point, anchor });
    }
    return found;
  }

  /* Where the version changed: a line each, and as many names as there is room for. */
  function versions(points, width) {
    const found = named(points, width);
    const names = (anchor) => Plot.text(found.filter((one) => one.anchor === anchor).map((one) => one.point), {
      x: "date", frameAnchor: "top", dy: -14, textAnchor: anchor, text: name, fill: colour("--ink"),
    });
    return [
      Plot.ruleX(points.filter((point) => point.other),
        { x: "date", stroke: colour("--ink"), strokeDasharray: "2,3", strokeOpacity: 0.7 }),
      ...["start", "middle", "end"].map(names),
    ];
  }

  function tip(points, y) {
    return Plot.tip(points, Plot.pointerX({
      x: "date", y, title: words, fill: colour("--raised"), stroke: colour("--line-strong"), textPadding: 8, lineHeight: 1.35,
    }));
  }

  function settings(points, width, y, marks) {
    const [first, last] = [points[0].date, points[points.length - 1].date];
    const half = 43200000;
    return {
      width, height: HEIGHT, marginTop: 32, marginLeft: LEFT, marginRight: RIGHT,
      style: { background: "transparent", fontSize: "12px" },
      x: { type: "utc", domain: first < last ? [first, last] : [new Date(+first - half), new Date(+last + half)],
        label: null, ticks: Math.max(2, Math.floor(width / 110)) },
      y, marks,
    };
  }

  function shares(points, width) {
    const known = points.flatMap((point) => [point.correctness, point.support]).filter((value) => value !== null);
    const low = Math.max(0, Math.floor((Math.min(100, ...known) - 0.5) / 2) * 2);
    const dots = points.length < 40;
    const line = (y, options) => Plot.line(points, { x: "date", y, ...options });
    const dot = (y, fill) => Plot.dot(points, { x: "date", y, r: 2.5, fill, filter: (point) => point[y] !== null });
    return Plot.plot(settings(points, width, { domain: [low, 100], label: "% of cases", grid: true, ticks: 5 }, [
      ...versions(points, width),
      line("support", { stroke: colour("--soft"), strokeWidth: 1.75, strokeDasharray: "5,4" }),
      line("correctness", { stroke: colour("--bar"), strokeWidth: 2.5 }),
      dots ? [dot("support", colour("--soft")), dot("correctness", colour("--bar"))] : null,
      tip(points, "correctness"),
    ]));
  }

  function failures(points, width) {
    const high = Math.max(1, ...points.map((point) => point.failures));
    const settled = { domain: [0, high], label: "failures", grid: true, ticks: Math.min(5, high), tickFormat: "d" };
    const fill = colour("--all");
    return Plot.plot(settings(points, width, settled, [
      Plot.areaY(points, { x: "date", y: "failures", curve: "step-after", fill, fillOpacity: 0.25 }),
      Plot.line(points, { x: "date", y: "failures", curve: "step-after", stroke: fill, strokeWidth: 2 }),
      points.length < 40 ? Plot.dot(points, { x: "date", y: "failures", r: 2.5, fill }) : null,
      ...versions(points, width),
      Plot.ruleY([0], { stroke: colour("--line-strong") }),
      tip(points, "failures"),
    ]));
  }

  const charts = { shares, failures };

  function draw() {
    for (const figure of document.querySelectorAll("[data-chart]")) {
      const points = told[Number(figure.dataset.series)];
      const width = figure.clientWidth - 16;
      if (!points || width <= 0) { continue; }
      const chart = charts[figure.dataset.chart](points, width);
      chart.setAttribute("aria-hidden", "true");  // the figure has a label, the table has the data
      figure.replaceChildren(chart);
    }
  }

  let waiting = 0;
  function drawSoon() {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(draw);
  }

  opconform.takeTrend = (series) => {
    told = series.map((points) => points.map((point) => ({ ...point, date: new Date(point.started) })));
    draw();
  };
  document.addEventListener("opconform-theme", drawSoon);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawSoon);
  window.addEventListener("resize", drawSoon);
})();
