// The charts of plans, for reports, which contain this text, and for the page of pacer serve, which imports it. It needs
// uPlot as a global.

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const height = () => innerWidth < 560 ? 260 : 340;
const font = "12px system-ui, sans-serif";

// sig formats a number with n significant digits and no exponent.
export function sig(v, n) {
  if (v == null) return "–";
  if (v === 0) return "0";
  return v.toFixed(Math.min(Math.max(n - 1 - Math.floor(Math.log10(Math.abs(v))), 0), 9));
}
export const short = (v) => v == null ? "" : String(+v.toPrecision(6));

export function element(tag, className, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text != null) e.textContent = text;
  return e;
}

// planCode returns the element of a plan, which may break after commas.
export function planCode(plan) {
  const code = element("code");
  for (const piece of plan.split(/(?<=,)/)) code.append(piece, document.createElement("wbr"));
  return code;
}

// axes returns the axes of a chart; x and y override their defaults.
export function axes(x, y) {
  const base = {
    stroke: css("--soft"), font, labelFont: font, labelSize: 20, labelGap: 2,
    grid: {stroke: css("--grid"), width: 1}, ticks: {stroke: css("--rule"), width: 1, size: 5},
  };
  return [{...base, size: 30, ...x}, {...base, size: 50, ...y}];
}

// logMarks returns the marks of a logarithmic axis: 1, 2 and 5 times powers of ten, as many as have room.
export function logMarks(u, axis, min, max) {
  const out = [], room = 26 / Math.max(u.bbox.height / devicePixelRatio, 1) * Math.log(max / min);
  for (let p = Math.floor(Math.log10(min)); p <= Math.log10(max); p++) {
    for (const m of [1, 2, 5]) {
      const v = +(m * 10 ** p).toPrecision(3);
      if (v >= min && v <= max && (!out.length || Math.log(v / out[out.length - 1]) >= room)) out.push(v);
    }
  }
  return out;
}

// place clears the box of a chart and writes the title of its y axis.
function place(box, title) { box.replaceChildren(element("p", "axis", title)); }

// ramp returns the colour at t in [0, 1] from few devices to many.
function ramp(t) {
  const stops = [1, 2, 3, 4, 5].map((i) => css("--r" + i).match(/[0-9a-f]{2}/gi).map((h) => parseInt(h, 16)));
  const at = Math.min(t * 4, 3.999), i = Math.floor(at);
  return "rgb(" + stops[i].map((c, k) => Math.round(c + (stops[i + 1][k] - c) * (at - i))).join(",") + ")";
}

// The Pareto front: a line and its points for each number of devices.
export function drawFront(box, chart) {
  place(box, chart.speed + ", samples/s");
  const color = (c) => ramp(chart.counts.length > 1 ? c / (chart.counts.length - 1) : 0.5);
  const points = chart.counts.flatMap((l, c) => l.gib.map((g, i) => ({c, i, x: g, y: l.speed[i]})));
  const xs = [...new Set(points.map((p) => p.x))].sort((a, b) => a - b), at = new Map(xs.map((x, i) => [x, i]));
  const lines = chart.counts.map((l) => {
    const ys = new Array(xs.length).fill(null);
    l.gib.forEach((g, i) => { ys[at.get(g)] = l.speed[i]; });
    return ys;
  });
  const speeds = points.map((p) => p.y), low = Math.min(...speeds), high = Math.max(...speeds), log = high > 5 * low;
  const best = chart.best;
  let only = null; // the one line to show, null for all
  const faint = (c) => only != null && only !== c;

  // Above the lines: the memory of a device, the best plan, and the numbers of devices.
  function dress(u) {
    const g = u.ctx, r = devicePixelRatio, placed = [];
    const px = (v) => u.valToPos(v, "x", true), py = (v) => u.valToPos(v, "y", true);
    g.save();
    g.font = 12 * r + "px system-ui, sans-serif";
    if (chart.device_gib != null) {
      const x = px(chart.device_gib), text = "a device: " + short(+chart.device_gib.toPrecision(4)) + " GiB";
      g.strokeStyle = g.fillStyle = css("--soft");
      g.setLineDash([5 * r, 4 * r]);
      g.beginPath(); g.moveTo(x, u.bbox.top); g.lineTo(x, u.bbox.top + u.bbox.height); g.stroke();
      g.setLineDash([]);
      g.textAlign = "right";
      g.fillText(text, x - 6 * r, u.bbox.top + u.bbox.height - 8 * r);
    }
    if (best) {
      g.strokeStyle = css("--ink");
      g.lineWidth = 2 * r;
      g.beginPath(); g.arc(px(best.gib), py(best.speed), 7 * r, 0, 7); g.stroke();
    }
    g.textAlign = "left";
    for (let c = chart.counts.length - 1; c >= 0; c--) {
      const l = chart.counts[c], x = px(l.gib[0]) + 8 * r, y = py(l.speed[0]) + 4 * r;
      if (chart.counts.length < 2 || faint(c) || placed.some(([a, b]) => Math.abs(a - x) < 26 * r && Math.abs(b - y) < 12 * r)) continue;
      placed.push([x, y]);
      g.fillStyle = css("--ink");
      g.fillText(l.n, x + (best && best.gib === l.gib[0] && best.speed === l.speed[0] ? 4 * r : 0), y);
    }
    g.restore();
  }

  const most = Math.max(chart.device_gib || 0, xs[xs.length - 1], best ? best.gib : 0);
  const u = new uPlot({
    width: box.clientWidth, height: height(), legend: {show: false},
    axes: axes({label: "memory per device, GiB", size: 30}, log ? {splits: logMarks, filter: (u, vs) => vs, values: (u, vs) => vs.map(short)} : {values: (u, vs) => vs.map(short)}),
    cursor: {x: false, y: false, points: {show: false}, drag: {x: false, y: false}},
    scales: {
      x: {time: false, range: () => [0, most * 1.06]},
      y: {distr: log ? 3 : 1, range: () => log ? [low / 1.25, high * 1.25] : [low - 0.1 * (high - low || low), high + 0.1 * (high - low || low)]},
    },
    series: [{}, ...chart.counts.map((l, c) => ({
      label: String(l.n), stroke: () => faint(c) ? css("--grid") : color(c), width: 1.5, spanGaps: true,
      paths: uPlot.paths.stepped({align: 1}),
      points: {show: true, size: 7, fill: () => faint(c) ? css("--grid") : color(c), stroke: () => faint(c) ? css("--grid") : color(c)},
    }))],
    hooks: {draw: [dress]},
  }, [xs, ...lines], box);

  if (chart.counts.length > 1) box.append(key());
  const read = element("p", "read"), mark = element("div", "mark");
  u.over.append(mark);
  box.append(read);
  say(null);

  // key lists the numbers of devices; one of them can be shown alone.
  function key() {
    const list = element("div", "key");
    list.append(element("span", "unit", "devices"));
    chart.counts.forEach((l, c) => {
      const b = element("button", "", String(l.n)), dot = element("span", "swatch");
      dot.style.background = color(c);
      b.type = "button";
      b.title = "show only plans on " + l.n + " devices";
      b.setAttribute("aria-pressed", "false");
      b.prepend(dot);
      b.addEventListener("click", () => {
        only = only === c ? null : c;
        list.querySelectorAll("button").forEach((other, i) => other.setAttribute("aria-pressed", String(i === only)));
        say(null);
        u.redraw(false);
      });
      list.append(b);
    });
    return list;
  }
  function say(p) {
    mark.style.display = p ? "block" : "none";
    read.replaceChildren();
    if (!p) {
      read.append(element("span", "unit", "Point at a plan to read it." + (best ? " The ring is the best plan of this page." : "")));
      return;
    }
    const l = chart.counts[p.c];
    read.append(planCode(l.plans[p.i]), document.createElement("br"),
      l.n + (l.n === 1 ? " device, " : " devices, ") + sig(p.y, 4) + " samples/s, " + sig(p.x, 3) + " GiB a device");
  }
  const point = (e) => {
    const r = u.over.getBoundingClientRect();
    let nearest = null, near = 40 * 40;
    for (const p of points) {
      if (faint(p.c)) continue;
      const d = (u.valToPos(p.x, "x") - e.clientX + r.left) ** 2 + (u.valToPos(p.y, "y") - e.clientY + r.top) ** 2;
      if (d < near) [nearest, near] = [p, d];
    }
    say(nearest);
    if (nearest) {
      mark.style.left = u.valToPos(nearest.x, "x") + "px";
      mark.style.top = u.valToPos(nearest.y, "y") + "px";
    }
  };
  u.over.addEventListener("pointermove", point);
  u.over.addEventListener("pointerdown", point);
  return u;
}

// range formats the numbers of devices from v to the next change.
function range(ns, v) {
  const next = ns[ns.indexOf(v) + 1];
  return v == null ? "–" : next > v + 1 ? v + " – " + (next - 1) : String(v);
}

// Lines over the number of devices. Between two numbers the lower one holds, and
// the cursor shows that.
function overDevices(box, title, chart, series, lines, extra, told) {
  place(box, title);
  const values = (u, vs) => vs.map(short), u = new uPlot({
    width: box.clientWidth, height: height(),
    axes: axes({label: "devices", values, incrs: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 65536, 262144]}, {values}),
    cursor: {
      y: false, drag: {x: true, y: false}, points: {size: 7}, sync: {key: "devices"},
      dataIdx: (u, i, closest, x) => closest > 0 && u.data[0][closest] > x ? closest - 1 : closest,
    },
    scales: {x: {time: false, range: (u, min, max) => min === chart.n[0] ? [0, max * 1.02] : [min, max]}, y: {range: (u, min, max) => [0, Math.max(max, 1e-9) * 1.05]}},
    series: [{label: "devices", value: (u, v) => range(chart.n, v)}, ...series],
    legend: {markers: {fill: (u, i) => i ? u.series[i].marker || u.series[i].stroke() : null}},
    ...extra,
    hooks: {setCursor: [(u) => {
      if (u.cursor.idx == null) u.setLegend({idx: chart.n.length - 1}, false);
      if (told) told(u.cursor.idx);
    }]},
  }, [chart.n, ...lines], box);
  u.setCursor({left: -10, top: -10});
  return u;
}

// dots draws the points of a line with few points.
const dots = (color) => ({show: (u) => u.data[0].length < 60, size: 6, stroke: () => css(color), fill: () => css(color)});

export function drawCurve(box, chart) {
  const value = (u, v) => sig(v, 4), stepped = uPlot.paths.stepped({align: 1});
  const line = (label, color, more) => ({label, value, stroke: () => css(color), width: 2, points: {show: false}, ...more});
  const series = [line(chart.name, "--c1", {paths: stepped, width: 2.25, points: dots("--c1")})], lines = [chart.speed], extra = {};
  if (chart.lo.some((v) => v != null)) {
    const pale = "color-mix(in srgb, " + css("--c1") + " 40%, transparent)", edge = {paths: stepped, width: 0.75, marker: pale};
    series.push(line("90 % from", "--c1", edge), line("to", "--c1", edge));
    lines.push(chart.lo, chart.hi);
    extra.bands = [{series: [3, 2], fill: () => "color-mix(in srgb, " + css("--c1") + " 16%, transparent)"}];
  }
  series.push(line("linear scaling", "--c2", {dash: [7, 5], width: 1.5}));
  lines.push(chart.linear);
  if (chart.target != null) {
    series.push(line("target", "--c4", {dash: [2, 4], width: 1.5}));
    lines.push(chart.n.map(() => chart.target));
  }
  const read = element("p", "read");
  const told = (i) => {
    read.replaceChildren(i == null ? element("span", "unit", "Point at a number of devices to read its plan. Drag to zoom in, double-click to zoom out.") : planCode(chart.plans[i]));
  };
  const u = overDevices(box, chart.name + ", samples/s", chart, series, lines, extra, told);
  u.root.parentNode.append(read);
  return u;
}

export function drawGain(box, chart) {
  const value = (u, v) => sig(v, 3);
  return overDevices(box, chart.name + " per device, samples/s", chart, [
    {label: "gain per device added", value, stroke: () => css("--c3"), fill: () => "color-mix(in srgb, " + css("--c3") + " 22%, transparent)", width: 1.5, paths: uPlot.paths.stepped({align: -1}), points: {show: false}},
    {label: "mean over all devices", value, stroke: () => css("--c1"), width: 2, points: dots("--c1")},
  ], [chart.gain, chart.per_device], {});
}

// drawMemory draws the memory of a device over a step: chart has t in seconds, gib that holds from each, and the device's limit.
export function drawMemory(box, chart) {
  place(box, "memory, GiB");
  const value = (u, v) => sig(v, 3), values = (u, vs) => vs.map(short);
  return new uPlot({
    width: box.clientWidth, height: height(), axes: axes({label: "time, s", values}, {values}), cursor: {y: false, points: {size: 7}},
    scales: {x: {time: false}, y: {range: (u, min, max) => [0, max * 1.05]}},
    series: [{label: "time", value},
      {label: "memory", value, stroke: () => css("--c1"), width: 1.5, fill: () => "color-mix(in srgb, " + css("--c1") + " 16%, transparent)", paths: uPlot.paths.stepped({align: 1}), points: {show: false}},
      ...chart.limit ? [{label: "the device has", value, stroke: () => css("--soft"), dash: [5, 4], width: 1.5, points: {show: false}}] : []],
    legend: {markers: {fill: (u, i) => i ? u.series[i].stroke() : null}},
  }, [chart.t, chart.gib, ...chart.limit ? [chart.t.map(() => chart.limit)] : []], box);
}

// drawShares draws for each line the share of its values that are at most x; x is logarithmic and a share itself. A line has a
// name, a colour of the style sheet and values above 0.
export function drawShares(box, title, label, lines) {
  place(box, title);
  const xs = [...new Set(lines.flatMap((l) => l.values))].sort((a, b) => a - b), percent = (v) => v == null ? "–" : sig(100 * v, 2) + " %";
  const share = (l) => xs.map((x) => l.values.filter((v) => v <= x).length / l.values.length);
  const powers = [-5, -4, -3, -2, -1, 0, 1, 2, 3].flatMap((p) => [1, 2, 5].map((m) => m * 10 ** p)), marks = (u, axis, min, max) => powers.filter((v) => v >= min && v <= max);
  return new uPlot({
    width: box.clientWidth, height: height(), cursor: {y: false, points: {size: 7}},
    axes: axes({label, splits: marks, filter: (u, vs) => vs.map((v, i) => vs.length < 9 || i % 3 === 0 ? v : null), values: (u, vs) => vs.map((v) => v == null ? "" : +(100 * v).toPrecision(3) + " %")}, {values: (u, vs) => vs.map(percent)}),
    scales: {x: {time: false, distr: 3, range: (u, min, max) => [min / 1.1, Math.max(max, min * 1.01) * 1.1]}, y: {range: [0, 1.02]}},
    series: [{label: "at most", value: (u, v) => percent(v)},
      ...lines.map((l) => ({label: l.name, value: (u, v) => percent(v), stroke: () => css(l.color), width: 2, paths: uPlot.paths.stepped({align: 1}), points: {show: false}}))],
    legend: {markers: {fill: (u, i) => i ? u.series[i].stroke() : null}},
  }, [xs, ...lines.map(share)], box);
}

// keepDrawn calls draw, which returns charts, and calls it again when the theme changes; it follows the width of the window.
// It returns a function that ends this.
export function keepDrawn(draw) {
  let plots = [];
  const again = () => {
    plots.forEach((p) => p.destroy());
    plots = draw();
  };
  const resize = () => plots.forEach((p) => p.setSize({width: p.root.parentNode.clientWidth, height: p.height}));
  const theme = matchMedia("(prefers-color-scheme: dark)");
  again();
  theme.addEventListener("change", again);
  addEventListener("resize", resize);
  return () => {
    theme.removeEventListener("change", again);
    removeEventListener("resize", resize);
    plots.forEach((p) => p.destroy());
    plots = [];
  };
}
