"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Durations: ticks have one unit, values two.
  const units = [[86400, "d", 3600, "h"], [3600, "h", 60, "m"], [60, "m", 1, "s"], [1, "s", 1, "s"]];
  const decimals = (v, n) => String(+v.toFixed(n));
  // tick writes s in the largest unit that divides the distance between ticks.
  function tick(s, apart) {
    if (s === 0) return "0";
    const [size, name] = units.find(([u]) => apart % u === 0) || [1, "s"];
    return decimals(s / size, 3) + " " + name;
  }
  function duration(s) {
    if (s == null) return "–";
    if (s < 59.95) return decimals(s, 1) + " s";
    const [, big, part, small] = units.find(([u, , p]) => Math.round(s / p) * p >= u);
    const parts = Math.round(s / part), per = units.find((u) => u[1] === big)[0] / part;
    return Math.floor(parts / per) + " " + big + " " + String(parts % per).padStart(2, "0") + " " + small;
  }

  const marks = [.001, .01, .1, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 18000, 43200, 86400,
    2 * 86400, 5 * 86400, 10 * 86400, 30 * 86400, 100 * 86400, 365 * 86400, 1000 * 86400];
  const steps = [.001, .01, .1, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
    2 * 86400, 5 * 86400, 10 * 86400, 20 * 86400, 50 * 86400, 100 * 86400, 200 * 86400, 500 * 86400, 1000 * 86400];

  // logMarks keeps the round durations in view that leave room for a label.
  function logMarks(u, axis, min, max) {
    const room = 56 / Math.max(u.bbox.width / devicePixelRatio, 1) * Math.log(max / min);
    const out = [];
    for (const m of marks) {
      if (m < min || m > max || (out.length && Math.log(m / out[out.length - 1]) < room)) continue;
      out.push(m);
    }
    return out;
  }

  const dashes = [[], [9, 4], [3, 3], [12, 3, 3, 3]];
  function line(label, i, value, stepped) {
    return {
      label, value, width: 1.75, stroke: css("--c" + (i % 8 + 1)),
      dash: i < 8 ? undefined : dashes[Math.floor(i / 8) % 4], points: {show: false}, spanGaps: false,
      paths: stepped ? uPlot.paths.stepped({align: 1}) : undefined,
    };
  }

  function axes(x) {
    const base = () => ({
      stroke: css("--soft"), font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
      grid: {stroke: css("--grid"), width: 1}, ticks: {stroke: css("--rule"), width: 1, size: 5},
    });
    return [{...base(), size: 32, ...x}, {...base(), size: 46}];
  }

  // A chart: where it goes, its data, and how x, y and values read.
  function draw(id, chart, how) {
    const box = document.getElementById(id);
    box.textContent = "";
    if (!chart) {
      box.innerHTML = '<p class="empty">Nothing to draw: no job finished.</p>';
      return null;
    }
    const a = axes(how.x);
    if (how.whole) a[1].incrs = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 1e7, 1e8];
    return new uPlot({
      width: box.clientWidth, height: height(), axes: a,
      cursor: {y: false, drag: {x: true, y: false}, points: {size: 7}, focus: {prox: 16},
        sync: how.sync ? {key: how.sync, setSeries: true} : undefined},
      scales: {x: {time: false, distr: how.log ? 3 : 1, range: (u, min, max) => [min, max]}, y: {range: how.range}},
      series: [{label: how.label, value: (u, v) => duration(v)},
        ...data.policies.map((p, i) => line(p, i, how.value, how.stepped))],
      focus: {alpha: .25},
      legend: {markers: {fill: (u, i) => i ? u.series[i].stroke() : null}},
    }, [chart.x, ...chart.lines], box);
  }

  const height = () => innerWidth < 560 ? 240 : 320;
  const share = (u, v) => v == null ? "–" : v.toFixed(3);
  const count = (u, v) => v == null ? "–" : decimals(v, 1);
  const fromZero = (u, min, max) => [0, Math.max(1, max * 1.05)];

  let plots = [];
  function drawAll() {
    plots.forEach((p) => p && p.destroy());
    const ticks = (u, vs, axis, space, incr) => vs.map((v) => tick(v, incr));
    const time = {x: {incrs: steps, space: 60, values: ticks}, stepped: true, sync: "time", label: "time"};
    plots = [
      draw("jct", data.jct, {log: true, x: {splits: logMarks, filter: (u, vs) => vs, values: (u, vs) => vs.map((v) => tick(v, v))}, label: "JCT", value: share, range: [0, 1]}),
      draw("used", data.used, {...time, value: share, range: [0, 1]}),
      draw("waiting", data.waiting, {...time, value: count, range: fromZero, whole: true}),
    ];
  }

  for (const id of ["used", "waiting"]) {
    if (data[id]) document.getElementById(id + "-step").textContent = "; each step is the mean over " + tick(data[id].step_s, data[id].step_s);
  }
  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  addEventListener("resize", () => plots.forEach((p) => {
    if (p) p.setSize({width: p.root.parentNode.clientWidth, height: height()});
  }));

  // Sorting: figures by their exact value, undefined ones last; names as text.
  const table = document.getElementById("runs"), heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, c) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((h) => h.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows], sign = down ? -1 : 1;
    rows.sort((a, b) => {
      if (c === 0) return sign * a.cells[0].textContent.localeCompare(b.cells[0].textContent);
      const x = a.cells[c].dataset.v, y = b.cells[c].dataset.v;
      if (x === "" || y === "") return (x === "") - (y === "");
      return sign * (x - y);
    });
    table.tBodies[0].append(...rows);
  }));
})();
