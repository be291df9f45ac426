// The pipeline of a step: what each stage computes when, drawn, and as a trace that Perfetto and chrome://tracing read.

import {h, charts, sig, duration, percent} from "./core.js";
import {css, drawMemory, keepDrawn} from "./charts.js";

// order returns the operations of stage s in a schedule: [kind, micro-batch, chunk], F forward and B backward. It is that of
// 1F1B (Narayanan et al., SC 2021, sections 2.2.1 and 2.2.2): forwards until the pipeline is full, then one backward after each.
function order(s, {pp, vp, ga, schedule}) {
  const all = pp * vp, total = ga * vp, ops = [];
  // The k-th forward of a stage with chunks takes pp micro-batches through a chunk, then through the next.
  const place = (k, back) => {
    const chunk = Math.floor(k % all / pp), m = Math.floor(k / all) * pp + k % pp;
    return [m, back ? vp - 1 - chunk : chunk];
  };
  const first = schedule === "gpipe" ? total : Math.min(vp > 1 ? (pp - s - 1) * 2 + (vp - 1) * pp : pp - s - 1, total);
  for (let k = 0; k < first; k++) ops.push(["F", ...place(k)]);
  for (let k = first; k < total; k++) ops.push(["F", ...place(k)], ["B", ...place(k - first, true)]);
  for (let k = total - first; k < total; k++) ops.push(["B", ...place(k, true)]);
  return ops;
}

// simulate runs the stages. With a schedule of zero bubbles the gradient of the weights, W, is computed apart from B, and fills
// the time in which a stage waits (Qi et al., ICLR 2024). sec has the time of F, B and W of a micro-batch in a chunk, seconds.
export function simulate(plan, sec) {
  const {pp, vp} = plan, apart = plan.schedule.startsWith("zb-"), ends = new Map(), bars = [];
  const stages = Array.from({length: pp}, (_, s) => ({ops: order(s, plan), next: 0, at: 0, owed: []}));
  const key = (kind, s, m, c) => kind + "," + (c * pp + s) + "," + m;
  // ready returns when an operation may begin, undefined if that is not known yet.
  const ready = (s, [kind, m, c]) => {
    const v = c * pp + s;
    if (kind === "F") return v === 0 ? 0 : ends.get(key("F", (v - 1) % pp, m, Math.floor((v - 1) / pp)));
    return v === pp * vp - 1 ? ends.get(key("F", s, m, c)) : ends.get(key("B", (v + 1) % pp, m, Math.floor((v + 1) / pp)));
  };
  const run = (s, kind, m, c, from) => {
    const end = from + sec[kind];
    bars.push({stage: s, kind, m, chunk: c, from, end});
    stages[s].at = end;
    ends.set(key(kind, s, m, c), end);
  };
  for (let moved = true; moved;) {
    moved = false;
    stages.forEach((st, s) => {
      for (; st.next < st.ops.length; st.next++) {
        const op = st.ops[st.next], from = ready(s, op);
        if (from == null) return;
        while (apart && st.owed.length && st.at + sec.W <= from + 1e-12) run(s, "W", ...st.owed.shift(), st.at);
        run(s, ...op, Math.max(from, st.at));
        if (apart && op[0] === "B") st.owed.push(op.slice(1));
        moved = true;
      }
    });
  }
  stages.forEach((st, s) => { for (const w of st.owed) run(s, "W", ...w, st.at); });
  return bars;
}

const most = 60000; // operations of a drawing

export async function show(root, r, fit, page) {
  await charts();
  const p = r.plan_parts, plan = {pp: p.pp, vp: p.vp || 1, ga: p.ga, schedule: p.schedule || "1f1b"}, t = r.explain.step_s;
  if (plan.pp * plan.vp * plan.ga * 3 > most) {
    root.append(h("p", {class: "empty"}, "The step has " + plan.pp * plan.vp * plan.ga * 2 + " operations, too many to draw."));
    return;
  }
  if (plan.vp > 1 && plan.ga % plan.pp) {
    root.append(h("p", {class: "empty"}, plan.ga + " micro-batches are no multiple of " + plan.pp + " stages: the order of chunks is then the framework's own."));
    return;
  }
  // A device computes for the whole step what compute and the traffic within stages take; a backward pass takes twice a forward one.
  const work = ((t.compute || 0) + (t.tp || 0) + (t.cp || 0) + (t.ep || 0)) / plan.ga / plan.vp, again = (t.recompute || 0) / plan.ga / plan.vp, apart = plan.schedule.startsWith("zb-");
  const sec = {F: work / 3, B: (apart ? work / 3 : 2 * work / 3) + again, W: work / 3};
  const bars = simulate(plan, sec), end = Math.max(...bars.map((b) => b.end)), busy = bars.reduce((n, b) => n + b.end - b.from, 0);
  const stored = stagePeaks(bars, plan), at = r.explain.mem_peak?.stage || 0;
  const box = h("figure", {class: "chart", "aria-label": "Memory over the step"});
  const canvas = h("canvas", {class: "lane", role: "img", "aria-label": "Timeline of " + plan.pp + " stages"}), read = h("p", {class: "hint", role: "status"}, "Point at an operation to read it.");
  root.append(h("p", {}, plan.ga + " micro-batches on " + plan.pp + " stages" + (plan.vp > 1 ? " of " + plan.vp + " chunks" : "") + ", schedule " + plan.schedule + ": forward " + duration(sec.F) + ", backward " + duration(sec.B) + (apart ? ", gradient of weights " + duration(sec.W) : "") +
    ". Stages wait for " + percent(1 - busy / end / plan.pp) + " of the time. Stages count as equal, and transfers between them are left out."),
    h("p", {class: "key"}, [["c1", "forward"], ["c3", "backward"], apart && ["c4", "gradient of weights"]].filter(Boolean).map(([c, name]) => h("span", {class: "part"}, h("span", {class: "swatch " + c}), name))),
    canvas, read, h("p", {}, "Activations of at most " + stored.join(", ") + " micro-batches are in the memory of the stages, in their order."),
    h("h3", {}, "Memory of stage " + (at + 1) + " over the step"), h("p", {}, "Activations of a micro-batch are counted from the end of its forward pass to the end of its backward pass; the rest of the peak as if it were there all the time."),
    box,
    h("div", {class: "tools"}, h("button", {type: "button", onclick: () => save(r.plan, bars)}, "Save as a trace"), h("span", {class: "hint"}, "JSON for Perfetto and chrome://tracing")));
  const stop = keepDrawn(() => [drawMemory(box, memoryChart(bars, at, stored[at], r.explain.mem_gib, fit))]);
  page.signal.addEventListener("abort", stop);
  const lane = Math.max(Math.min(26, 420 / plan.pp), 4), left = 30;
  const draw = () => {
    const g = canvas.getContext("2d"), dpr = devicePixelRatio, width = root.clientWidth, x = (v) => left + v / end * (width - left), colour = {F: css("--c1"), B: css("--c3"), W: css("--c4")};
    canvas.width = Math.round(width * dpr);
    canvas.height = Math.round(lane * plan.pp * dpr);
    canvas.style.setProperty("height", lane * plan.pp + "px");
    g.scale(dpr, dpr);
    g.fillStyle = css("--head");
    g.fillRect(left, 0, width - left, lane * plan.pp);
    for (const b of bars) {
      g.fillStyle = colour[b.kind];
      g.globalAlpha = 1 - 0.35 * b.chunk / plan.vp;
      g.fillRect(x(b.from), b.stage * lane, Math.max(x(b.end) - x(b.from) - (x(b.end) - x(b.from) > 3 ? 1 : 0), 0.5), lane - 1);
    }
    g.globalAlpha = 1;
    g.fillStyle = css("--soft");
    g.font = "12px system-ui, sans-serif";
    g.textBaseline = "middle";
    for (let s = 0; s < plan.pp; s += Math.ceil(14 / lane)) g.fillText(s + 1, 4, (s + 0.5) * lane);
  };
  canvas.addEventListener("pointermove", (e) => {
    const at = (e.offsetX - left) / (canvas.clientWidth - left) * end, s = Math.floor(e.offsetY / lane), b = bars.find((o) => o.stage === s && o.from <= at && at < o.end);
    read.textContent = b ? "stage " + (s + 1) + ", " + {F: "forward", B: "backward", W: "gradient of weights"}[b.kind] + " of micro-batch " + (b.m + 1) + (plan.vp > 1 ? ", chunk " + (b.chunk + 1) : "") + ": " + duration(b.from) + " – " + duration(b.end) : at >= 0 ? "stage " + (s + 1) + " waits at " + duration(at) : "";
  });
  new ResizeObserver(draw).observe(root);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}

// stagePeaks returns how many micro-batches each stage has activations of at a time, at most; those of a chunk count in part.
export function stagePeaks(bars, {pp, vp}) {
  const held = new Array(pp).fill(0), peaks = new Array(pp).fill(0);
  const events = bars.filter((b) => b.kind !== "W").map((b) => [b.end, b.kind === "F" ? 1 : -1, b.stage]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  for (const [, n, s] of events) peaks[s] = Math.max(peaks[s], held[s] += n);
  return peaks.map((n) => +sig(n / vp, 3));
}

// memoryChart is the memory of a stage, of which the peak is known by part: activations in proportion to the micro-batches held.
function memoryChart(bars, stage, peak, parts, fit) {
  const rest = fit.mem_gib - parts.activations, events = bars.filter((b) => b.stage === stage && b.kind !== "W").map((b) => [b.end, b.kind === "F" ? 1 : -1]).sort((a, b) => a[0] - b[0]);
  const chunks = 1 + Math.max(...bars.map((b) => b.chunk)), t = [0], gib = [rest];
  let held = 0;
  for (const [at, n] of events) {
    held += n / chunks;
    t.push(at);
    gib.push(rest + parts.activations * held / peak);
  }
  return {t, gib, limit: fit.device_gib || null};
}

// trace returns the operations in the Trace Event Format: complete events, microseconds.
export function trace(plan, bars) {
  return {displayTimeUnit: "ms", otherData: {plan}, traceEvents: bars.map((b) => ({ph: "X", pid: 0, tid: b.stage + 1, ts: b.from * 1e6, dur: (b.end - b.from) * 1e6,
    name: b.kind + (b.m + 1), cat: {F: "forward", B: "backward", W: "weights"}[b.kind], args: {micro_batch: b.m + 1, chunk: b.chunk + 1}}))};
}

function save(plan, bars) {
  const url = URL.createObjectURL(new Blob([JSON.stringify(trace(plan, bars))], {type: "application/json"}));
  h("a", {href: url, download: "pipeline.json"}).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
