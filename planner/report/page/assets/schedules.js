// The charts of schedules, for reports, which contain this text after that of the charts of plans, and for the page of pacer
// serve, which imports it.

// Durations have one unit on ticks, two in values.
const timeUnits = [[86400, "d", 3600, "h"], [3600, "h", 60, "m"], [60, "m", 1, "s"], [1, "s", 1, "s"]];
const decimals = (v, n) => String(+v.toFixed(n));
// tick writes s in the largest unit that divides the distance between ticks.
function tick(s, apart) {
  if (s === 0) return "0";
  const [size, name] = timeUnits.find(([u]) => apart % u === 0) || [1, "s"];
  return decimals(s / size, 3) + " " + name;
}
function lasting(s) {
  if (s == null) return "–";
  if (s < 59.95) return decimals(s, 1) + " s";
  const [, big, part, small] = timeUnits.find(([u, , p]) => Math.round(s / p) * p >= u);
  const parts = Math.round(s / part), per = timeUnits.find((u) => u[1] === big)[0] / part;
  return Math.floor(parts / per) + " " + big + " " + String(parts % per).padStart(2, "0") + " " + small;
}

const timeMarks = [.001, .01, .1, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 18000, 43200, 86400,
  2 * 86400, 5 * 86400, 10 * 86400, 30 * 86400, 100 * 86400, 365 * 86400, 1000 * 86400];
const steps = [.001, .01, .1, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
  2 * 86400, 5 * 86400, 10 * 86400, 20 * 86400, 50 * 86400, 100 * 86400, 200 * 86400, 500 * 86400, 1000 * 86400];

const ratios = [-3, -2, -1, 0, 1, 2, 3, 4, 5, 6].flatMap((e) => [1, 2, 5].map((m) => +(m + "e" + e)));

// roundMarks returns the round values in view with enough room for a label.
const roundMarks = (round) => (u, axis, min, max) => {
  const room = 56 / Math.max(u.bbox.width / devicePixelRatio, 1) * Math.log(max / min);
  const out = [];
  for (const m of round) {
    if (m < min || m > max || (out.length && Math.log(m / out[out.length - 1]) < room)) continue;
    out.push(m);
  }
  return out;
};

const dashes = [[], [9, 4], [3, 3], [12, 3, 3, 3]];
function line(label, i, value, stepped) {
  return {
    label, value, width: 1.75, stroke: css("--c" + (i % 8 + 1)),
    dash: i < 8 ? undefined : dashes[Math.floor(i / 8) % 4], points: {show: false}, spanGaps: false,
    paths: stepped ? uPlot.paths.stepped({align: 1}) : undefined,
  };
}

// drawLines draws a line for each policy into a box; how has the formats of x, y and values.
function drawLines(box, policies, chart, how) {
  box.textContent = "";
  if (!chart) {
    box.append(element("p", "empty", "Nothing to draw: " + box.dataset.none + "."));
    return null;
  }
  const a = axes({size: 32, ...how.x}, {size: 46});
  if (how.whole) a[1].incrs = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 1e7, 1e8];
  return new uPlot({
    width: box.clientWidth, height: innerWidth < 560 ? 240 : 320, axes: a,
    cursor: {y: false, drag: {x: true, y: false}, points: {size: 7}, focus: {prox: 16},
      sync: how.sync ? {key: how.sync, setSeries: true} : undefined},
    scales: {x: {time: false, distr: how.log ? 3 : 1, range: (u, min, max) => [min, max]}, y: {range: how.range}},
    series: [{label: how.label, value: (u, v) => (how.read || lasting)(v)},
      ...policies.map((p, i) => line(p, i, how.value, how.stepped))],
    focus: {alpha: .25},
    legend: {markers: {fill: (u, i) => i ? u.series[i].stroke() : null}},
  }, [chart.x, ...chart.lines], box);
}

const share = (u, v) => v == null ? "–" : v.toFixed(3);
const count = (u, v) => v == null ? "–" : decimals(v, 1);

// drawPolicies draws distributions and courses into boxes, by their names in data: jct, delay, rho, used and waiting. A box has the
// reason for an empty chart in data-none.
export function drawPolicies(boxes, data) {
  const ticks = (u, vs, axis, space, incr) => vs.map((v) => tick(v, incr));
  const time = {x: {incrs: steps, space: 60, values: ticks}, stepped: true, sync: "time", label: "time"};
  const logTime = {log: true, x: {splits: roundMarks(timeMarks), filter: (u, vs) => vs, values: (u, vs) => vs.map((v) => tick(v, v))}, value: share, range: [0, 1]};
  const ratio = (v) => v == null ? "–" : v.toPrecision(3);
  const draw = (name, how) => drawLines(boxes[name], data.policies, data[name], how);
  return [
    draw("jct", {...logTime, label: "JCT"}),
    draw("delay", {...logTime, label: "delay"}),
    draw("rho", {...logTime, label: "ρ", read: ratio, x: {splits: roundMarks(ratios), filter: (u, vs) => vs, values: (u, vs) => vs.map(String)}}),
    draw("used", {...time, value: share, range: [0, 1]}),
    draw("waiting", {...time, value: count, range: (u, min, max) => [0, Math.max(1, max * 1.05)], whole: true}),
  ].filter(Boolean);
}

// meanOver says over which time each step of a course is the mean.
export const meanOver = (chart) => chart ? "; each step is the mean over " + tick(chart.step_s, chart.step_s) : "";

// A Gantt chart has bars of jobs, or rows of nodes by the share of devices held.
// drawGantt draws that of one policy into parts, elements: canvas, picks for the buttons that choose the policy, about and under
// for text. It returns a function that ends it, null where no policy has such a chart.
export function drawGantt(parts, data) {
  const {canvas} = parts, pen = canvas.getContext("2d");
  const gantt = {at: data.gantts ? data.gantts.findIndex((g) => g) : -1, from: 0, to: 0, hover: -1};
  if (gantt.at < 0) return null;
  const left = () => innerWidth < 560 ? 40 : 76;
  const chart = () => data.gantts[gantt.at];
  const lanes = (g) => g.bars ? g.lanes : g.rows.length;
  const laneHeight = (g) => Math.max(Math.min(g.bars ? 420 / g.lanes : 400 / g.rows.length, 22), 1);
  const shade = (share) => "color-mix(in srgb, var(--c1) " + Math.round(share * 100) + "%, var(--head))";
  let shades = [];

  function openGantt(i) {
    Object.assign(gantt, {at: i, from: 0, to: data.gantts[i].end_s, hover: -1});
    parts.about.textContent = chart().about;
    [...parts.picks.children].forEach((b, k) => b.setAttribute("aria-pressed", k === i));
    paint();
  }

  // colours resolves the variables of the style sheet, which a canvas cannot use.
  function colours() {
    const probe = document.createElement("span");
    document.body.append(probe);
    shades = [];
    for (let k = 0; k < 36; k++) {
      probe.style.color = shade(k / 35);
      shades.push(getComputedStyle(probe).color);
    }
    probe.remove();
  }

  function paint() {
    const g = chart(), h = laneHeight(g), width = canvas.parentNode.clientWidth, body = h * lanes(g), dpr = devicePixelRatio;
    canvas.style.height = body + 26 + "px";
    canvas.width = Math.round(width * dpr);
    canvas.height = Math.round((body + 26) * dpr);
    pen.setTransform(dpr, 0, 0, dpr, 0, 0);
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = css("--head");
    pen.fillRect(left(), 0, width - left(), body);
    pen.save();
    pen.beginPath();
    pen.rect(left(), 0, width - left(), body);
    pen.clip();
    (g.bars ? drawBars : drawRows)(g, h, width);
    pen.restore();
    drawScales(g, h, width, body);
  }

  const toX = (t, width) => left() + (t - gantt.from) / (gantt.to - gantt.from) * (width - left());

  function drawBars(g, h, width) {
    const fills = [1, 2, 3, 4, 5, 6, 7].map((k) => css("--c" + k)), down = hatching(), gap = h >= 4 ? 1 : 0; // c8 is grey
    for (let i = 0; i < g.bars.length; i += 5) {
      const [lane, n, from, to, job] = g.bars.slice(i, i + 5);
      const a = toX(from * g.unit_s, width), b = toX(to * g.unit_s, width);
      if (b < left() || a > width) continue;
      pen.globalAlpha = gantt.hover < 0 || gantt.hover === job ? 1 : .25;
      pen.fillStyle = job < 0 ? down : fills[job % fills.length];
      pen.fillRect(a, lane * h, Math.max(b - a - (b - a > 3 ? 1 : 0), .5), n * h - gap);
    }
    pen.globalAlpha = 1;
  }

  // hatching is the fill of nodes that are down.
  function hatching() {
    const tile = document.createElement("canvas"), t = tile.getContext("2d");
    tile.width = tile.height = 8;
    t.fillStyle = css("--rule");
    t.fillRect(0, 0, 8, 8);
    t.strokeStyle = css("--soft");
    for (const x of [-8, 0, 8]) {
      t.moveTo(x - 1, 9);
      t.lineTo(x + 9, -1);
    }
    t.stroke();
    return pen.createPattern(tile, "repeat");
  }

  function drawRows(g, h, width) {
    if (shades.length === 0) colours();
    g.rows.forEach((row, r) => {
      for (let k = 0; k < row.length; k++) {
        const a = toX(k * g.step_s, width), b = toX(Math.min((k + 1) * g.step_s, g.end_s), width);
        if (b < left() || a > width) continue;
        pen.fillStyle = shades[parseInt(row[k], 36)];
        pen.fillRect(a, r * h, b - a + .5, h - (h >= 4 ? 1 : 0));
      }
    });
  }

  // drawScales names nodes on the left and times below.
  function drawScales(g, h, width, body) {
    pen.fillStyle = css("--soft");
    pen.strokeStyle = css("--page");
    pen.textAlign = "right";
    pen.textBaseline = "top";
    let free = 0;
    const narrow = left() < 50, firsts = g.bars ? g.nodes : g.names.map((n, i) => i);
    firsts.forEach((lane, i) => {
      const y = lane * h;
      if (g.bars && i > 0 && h * (lane - firsts[i - 1]) >= 6) {
        pen.fillStyle = css("--page");
        pen.fillRect(left(), y - 1, width - left(), 1);
        pen.fillStyle = css("--soft");
      }
      if (y < free || y + 11 > body) return;
      const first = g.bars ? String(i) : g.names[i].replace(/^nodes? (\d+).*/, "$1");
      pen.fillText((narrow ? "" : "node ") + first, left() - 6, y);
      free = y + 14;
    });
    pen.textBaseline = "alphabetic";
    const span = gantt.to - gantt.from, apart = steps.find((s) => s * (width - left()) / span >= 70) || steps[steps.length - 1];
    for (let t = Math.ceil(gantt.from / apart) * apart; t <= gantt.to; t += apart) {
      const x = toX(t, width);
      pen.textAlign = x > width - 24 ? "right" : x < left() + 12 ? "left" : "center";
      pen.fillText(tick(t, apart), Math.min(x, width), body + 20);
      pen.fillRect(Math.min(x, width - 1), body, 1, 5);
    }
  }

  // under describes the bar or row at a point of the canvas.
  function under(x, y) {
    const g = chart(), h = laneHeight(g), lane = Math.floor(y / h), width = canvas.clientWidth;
    const t = gantt.from + (x - left()) / (width - left()) * (gantt.to - gantt.from);
    if (x < left() || lane < 0 || lane >= lanes(g)) return [-1, ""];
    if (!g.bars) {
      const k = Math.min(Math.floor(t / g.step_s), g.rows[lane].length - 1);
      return [-1, g.names[lane] + ", " + lasting(t) + ": " + (parseInt(g.rows[lane][k], 36) / 35).toFixed(2) + " of the devices held, mean over " + tick(g.step_s, g.step_s)];
    }
    const node = g.nodes.findLastIndex((first) => first <= lane);
    for (let i = 0; i < g.bars.length; i += 5) {
      const [first, n, from, to, job] = g.bars.slice(i, i + 5);
      if (lane >= first && lane < first + n && t >= from * g.unit_s && t <= to * g.unit_s) {
        if (job < 0) return [-1, "node " + node + " was down from " + lasting(from * g.unit_s) + " to " + lasting(to * g.unit_s)];
        return [job, "job " + g.jobs[job] + ", here on " + n + (n === 1 ? " device" : " neighbouring devices") + " from " + lasting(from * g.unit_s) + " to " + lasting(to * g.unit_s)];
      }
    }
    return [-1, "node " + node + ", device " + (lane - g.nodes[node]) + ", " + lasting(t) + ": not held"];
  }

  const picks = parts.picks, said = parts.under;
  data.policies.forEach((p, i) => {
    const b = document.createElement("button");
    Object.assign(b, {type: "button", textContent: p, disabled: !data.gantts[i], onclick: () => openGantt(i)});
    picks.append(b);
  });
  picks.hidden = data.policies.length < 2;
  let pressed = null;
  const time = (x) => gantt.from + Math.min(Math.max((x - left()) / (canvas.clientWidth - left()), 0), 1) * (gantt.to - gantt.from);
  canvas.onpointerdown = (e) => { pressed = e.offsetX; };
  canvas.onpointermove = (e) => {
    const [job, text] = under(e.offsetX, e.offsetY);
    said.textContent = text || "\u00a0";
    if (job !== gantt.hover) { gantt.hover = job; paint(); }
  };
  canvas.onpointerleave = () => { pressed = null; said.textContent = "\u00a0"; gantt.hover = -1; paint(); };
  canvas.onpointerup = (e) => {
    if (pressed !== null && Math.abs(e.offsetX - pressed) > 8) {
      const a = time(Math.min(pressed, e.offsetX)), b = time(Math.max(pressed, e.offsetX));
      if (b - a > chart().end_s * 1e-5) Object.assign(gantt, {from: a, to: b});
      paint();
    }
    pressed = null;
  };
  canvas.ondblclick = () => { Object.assign(gantt, {from: 0, to: chart().end_s}); paint(); };
  openGantt(gantt.at);
  const theme = matchMedia("(prefers-color-scheme: dark)"), other = () => { shades = []; paint(); };
  theme.addEventListener("change", other);
  addEventListener("resize", paint);
  return () => {
    theme.removeEventListener("change", other);
    removeEventListener("resize", paint);
  };
}
