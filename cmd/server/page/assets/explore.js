// What changes with the numbers of devices and samples, with the type of device, and with its price.

import {h, api, charts, ApiError, body, tokensOf, accelerators, named, plainTable, planCode, parse, sig, big, brief, percent, duration, problemBox} from "./core.js";
import {drawCurve, drawGain, drawFront, keepDrawn} from "./charts.js";

const largest = 4096; // devices of a curve on the page

export async function show(root, q, page) {
  const most = Math.min(Math.max(4 * q.devices, 8), Math.max(largest, q.devices)), tokens = await tokensOf(q);
  const curve = (batch) => api("/v1/curve", body({...q, batch}, {max_devices: most}), page.signal).then((c) => c.points);
  const [points, front, list] = await Promise.all([curve(q.batch).catch(none), api("/v1/plan", body(q, {devices: most, min_devices: 1, pareto: true, top: 8}), page.signal).catch(none), accelerators(), charts()]);
  root.append(h("h1", {}, "More or fewer devices, other batches, other types"), prices(q, page, tokens), heatMap(q, page, tokens, most, curve, points));
  const memory = named(list, q.accelerator)?.mem_bytes / 2 ** 30;
  if (points) root.append(curveCharts(root, points, front, memory, page));
}

// none stands for an answer that there is no plan.
function none(err) {
  if (err instanceof ApiError && err.problem.type) return null;
  throw err;
}

// ---- The map of devices and batches ----

function batchesOf(q) {
  const given = (q.batches || "").split(/[\s,]+/).filter(Boolean).map((b) => { try { return parse("batch", b); } catch { return 0; } }).filter((b) => b > 0);
  return [...new Set(given.length ? given.slice(0, 12) : [0.25, 0.5, 1, 2, 4, 8].map((f) => Math.max(Math.round(f * q.batch), 1)))].sort((a, b) => a - b);
}

function heatMap(q, page, tokens, most, curve, own) {
  const place = h("div", {"aria-busy": "true"}, h("p", {class: "empty"}, "…")), counts = [];
  for (let n = 1; n <= most; n *= 2) counts.push(n);
  if (!counts.includes(q.devices)) counts.push(q.devices);
  counts.sort((a, b) => a - b);
  const batches = batchesOf(q), unit = tokens > 0 ? "tokens/s per device" : "samples/s per device", scale = tokens || 1;
  const input = h("input", {id: "batches", value: batches.join(", "), maxlength: 200, size: 32, autocomplete: "off", onchange: (e) => page.change({batches: e.target.value.trim() || undefined, plan: q.plan})});
  (async () => {
    const lines = await Promise.all(batches.map((b) => b === q.batch ? own : curve(b).catch(none)));
    const at = (i, n) => lines[i]?.find((p) => p.devices === n);
    const speeds = batches.flatMap((b, i) => counts.map((n) => at(i, n)?.samples_per_s / n)).filter((v) => v > 0), top = Math.max(...speeds), low = Math.min(...speeds);
    place.setAttribute("aria-busy", "false");
    if (!speeds.length) return place.replaceChildren(h("p", {class: "empty"}, "Nothing fits on up to " + most + " devices."));
    place.replaceChildren(h("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Rows: devices and batches"}, h("table", {class: "heat"}, h("caption", {class: "hidden"}, unit + " by devices and global batch"),
      h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "batch \\ devices"), counts.map((n) => h("th", {scope: "col", class: "num"}, big(n))))),
      h("tbody", {}, batches.map((b, i) => h("tr", {}, h("th", {scope: "row"}, big(b)), counts.map((n) => {
        const p = at(i, n), v = p?.samples_per_s / n;
        return p ? h("td", {class: v === top && "top", style: {"--heat": Math.round(4 + 40 * (v - low) / (top - low || 1)) + "%"}}, h("button", {type: "button", class: "cell", title: p.plan + ": " + duration(p.global_batch / p.samples_per_s) + " a step",
          "aria-label": brief(v * scale) + ", " + big(v * scale) + " " + unit + " on " + n + " devices with batch " + b, onclick: () => page.change({view: "answer", devices: n, batch: b})}, brief(v * scale))) : h("td", {class: "none", title: "no plan fits"}, "–");
      })))))));
  })().catch((err) => { if (!page.signal.aborted) place.replaceChildren(problemBox(err)); });
  return h("section", {"aria-labelledby": "h-heat"}, h("h2", {id: "h-heat"}, "Devices and batch"),
    h("p", {}, "Best " + unit + "; the ring is the highest. A figure opens its plans. Where a plan on fewer devices is as fast, that one counts."),
    h("div", {class: "tools"}, h("label", {for: "batches"}, "Batches"), input), place);
}

// ---- The curve and the Pareto front ----

// curveChart has the points at which the best plan changes, and the last.
function curveChart(points) {
  const at = points.filter((p, i) => i === 0 || i === points.length - 1 || p.plan !== points[i - 1].plan), v = at.map((p) => p.samples_per_s);
  return {
    name: "throughput", n: at.map((p) => p.devices), speed: v, lo: at.map((p) => p.lo), hi: at.map((p) => p.hi), target: null, plans: at.map((p) => p.plan),
    linear: at.map((p) => v[0] / at[0].devices * p.devices), per_device: at.map((p, i) => v[i] / p.devices),
    gain: at.map((p, i) => i === 0 ? null : (v[i] - v[i - 1]) / (p.devices - at[i - 1].devices)),
  };
}

const lines = 12; // numbers of devices that the colours of the front can tell apart

function frontChart(front, memory) {
  let counts = [...new Set(front.pareto.map((r) => r.devices))].sort((a, b) => a - b);
  if (counts.length > lines) counts = Array.from({length: lines}, (_, i) => counts[Math.round(i * (counts.length - 1) / (lines - 1))]);
  return {
    speed: "throughput", device_gib: memory || null, best: {gib: front.plans[0].mem_gib, speed: front.plans[0].samples_per_s},
    counts: counts.map((n) => {
      const of = front.pareto.filter((r) => r.devices === n).sort((a, b) => b.mem_gib - a.mem_gib);
      return {n, gib: of.map((r) => r.mem_gib), speed: of.map((r) => r.samples_per_s), plans: of.map((r) => r.plan)};
    }),
  };
}

function curveCharts(root, points, front, memory, page) {
  const boxes = ["Throughput by devices", "Gain of a device", "Speed and memory: plans that no other beats"].map((label) => h("figure", {class: "chart", "aria-label": label}));
  root.addEventListener("shown", () => {
    const end = keepDrawn(() => [
      ...points.length > 1 ? [drawCurve(boxes[0], curveChart(points)), drawGain(boxes[1], curveChart(points))] : [],
      ...front?.pareto?.length ? [drawFront(boxes[2], frontChart(front, memory))] : [],
    ]);
    page.signal.addEventListener("abort", end);
  }, {once: true});
  return h("div", {class: "two"},
    points.length > 1 && h("section", {"aria-labelledby": "h-curve"}, h("h2", {id: "h-curve"}, "Throughput by devices"), boxes[0]),
    points.length > 1 && h("section", {"aria-labelledby": "h-gain"}, h("h2", {id: "h-gain"}, "What each device adds"), boxes[1]),
    front?.pareto?.length && h("section", {"aria-labelledby": "h-front"}, h("h2", {id: "h-front"}, "Speed and memory"), h("p", {}, "Plans that no other beats in speed, memory and devices."), boxes[2]),
    h("section", {"aria-labelledby": "h-points"}, h("h2", {id: "h-points"}, "Where the best plan changes"), plainTable([
      {name: "Devices", num: true, cell: (p) => big(p.devices)}, {name: "Samples/s", num: true, cell: (p) => sig(p.samples_per_s, 3)}, {name: "90 %", num: true, cell: (p) => sig(p.lo, 3) + " – " + sig(p.hi, 3)},
      {name: "Plan", cell: (p) => planCode(p.plan)}], points.filter((p, i) => i === 0 || p.plan !== points[i - 1].plan).slice(0, 60), "Where the best plan changes")));
}

// ---- Types of devices, days and money ----

// readPrices reads prices per device-hour, such as h100:2.1,b200:4.5.
function readPrices(text) {
  const out = new Map();
  for (const pair of (text || "").split(",")) {
    const [name, price] = [pair.slice(0, pair.lastIndexOf(":")), +pair.slice(pair.lastIndexOf(":") + 1)];
    if (name.trim() && price > 0 && isFinite(price)) out.set(name.trim(), price);
  }
  return out;
}

const usual = ["A100-80GB-SXM", "H100-80GB-SXM", "H200", "B200", "MI300X"];
const least = 9, highest = 14; // powers of ten of the slider

function prices(q, page, perSample) {
  const known = readPrices(q.prices), place = h("div", {"aria-busy": "true"}, h("p", {class: "empty"}, "…"));
  let total = q.tokens || 1e12;
  const said = h("output", {for: "tokens"}, brief(total)), slider = h("input", {id: "tokens", type: "range", min: least, max: highest, step: 0.1, "aria-valuetext": brief(total), oninput: slide});
  slider.value = Math.log10(total);
  const rows = [];
  const run = (r, step) => total / perSample / q.batch * step, money = (r, step) => run(r, step) / 3600 * r.best.devices * r.price;
  const columns = [
    {name: "Type", cell: (r) => r.name},
    {name: "Plan", cell: (r) => r.best ? planCode(r.best.plan) : r.why},
    {name: "Step", num: true, cell: (r) => r.best ? duration(r.best.step_time_s) : ""},
    {name: "MFU", num: true, cell: (r) => r.best ? percent(r.best.mfu) : ""},
    {name: "GiB", num: true, cell: (r) => r.best ? sig(r.best.mem_gib, 3) : ""},
    {name: "Time", num: true, cell: (r) => r.best && perSample ? h("span", {title: "90 %: " + duration(run(r, r.best.step_time_lo_s)) + " – " + duration(run(r, r.best.step_time_hi_s))}, duration(run(r, r.best.step_time_s))) : ""},
    {name: "Price per device-hour", cell: (r) => h("input", {type: "text", inputmode: "decimal", value: r.price || "", "aria-label": "Price per device-hour of " + r.name, maxlength: 12, onchange: (e) => setPrice(r, e.target)})},
    {name: "Money", num: true, cell: (r) => r.best && r.price && perSample ? h("span", {title: "90 %: " + big(money(r, r.best.step_time_lo_s)) + " – " + big(money(r, r.best.step_time_hi_s))}, big(money(r, r.best.step_time_s))) : ""},
    {about: "ask for it", cell: (r) => r.best && h("button", {type: "button", "aria-label": "Plans of " + r.name, onclick: () => page.change({view: "answer", accelerator: r.name})}, "Plans")},
  ];
  const draw = () => {
    const held = document.activeElement?.closest?.("#prices") && document.activeElement.getAttribute("aria-label");
    place.replaceChildren(h("div", {id: "prices"}, plainTable(columns, rows, "Types of devices")));
    if (held) [...place.querySelectorAll("[aria-label]")].find((e) => e.getAttribute("aria-label") === held)?.focus();
  };
  function slide() {
    total = +(10 ** slider.value).toPrecision(2);
    said.textContent = brief(total);
    slider.setAttribute("aria-valuetext", brief(total));
    page.update({tokens: total});
    draw();
  }
  function setPrice(r, input) {
    const v = +input.value.replace(",", ".");
    if (input.value.trim() && !(v > 0 && isFinite(v))) { input.setAttribute("aria-invalid", "true"); return; }
    r.price = v || undefined;
    page.update({prices: rows.filter((x) => x.price).map((x) => x.name + ":" + x.price).join(",") || undefined});
    draw();
  }
  (async () => {
    const list = await accelerators(), names = (q.with || "").split(",").map((n) => n.trim()).filter(Boolean), own = named(list, q.accelerator)?.name || q.accelerator;
    const types = [...new Set([own, ...(names.length ? names : usual).map((n) => named(list, n)?.name || n)])].slice(0, 12);
    rows.push(...await Promise.all(types.map(async (name) => {
      const row = {name, price: [...known].find(([n]) => named(list, n)?.name === name || n === name)?.[1]};
      try {
        row.best = (await api("/v1/plan", body({...q, accelerator: name}, {devices: q.devices, top: 1}), page.signal)).plans[0];
      } catch (err) {
        if (!(err instanceof ApiError)) throw err;
        row.why = err.problem.infeasible ? "no plan fits on " + q.devices : err.message;
      }
      return row;
    })));
    place.setAttribute("aria-busy", "false");
    draw();
  })().catch((err) => { if (!page.signal.aborted) place.replaceChildren(problemBox(err)); });
  return h("section", {"aria-labelledby": "h-types"}, h("h2", {id: "h-types"}, "Types of devices, days and money"),
    h("p", {}, "The same question on " + big(q.devices) + " devices of other types. Prices are yours: the address keeps them, and no other price is known here."),
    perSample ? h("div", {class: "tools"}, h("label", {for: "tokens"}, "Tokens to train on"), slider, said) : h("p", {class: "hint"}, "The tokens of a sample are not known: give a sequence for days and money."),
    h("div", {class: "tools"}, h("label", {for: "with"}, "Types"), h("input", {id: "with", value: q.with || usual.join(", "), size: 44, maxlength: 1024, autocomplete: "off", onchange: (e) => page.change({with: e.target.value.trim() || undefined, plan: q.plan})})), place);
}
