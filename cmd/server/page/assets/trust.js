// What an answer rests on: the nearest measurements and their sources, and the training stack assumed.

import {h, local, api, body, planCode, sig, big, percent, duration, plainTable} from "./core.js";

export async function show(root, q, page) {
  const plan = q.plan || (await api("/v1/plan", body(q, {devices: q.devices, top: 1}), page.signal)).plans[0].plan;
  const asked = body(q, {plan, devices: q.devices});
  const [near, predicted] = await Promise.all([local ? null : api("/v1/nearest", {...asked, top: 12}, page.signal), api("/v1/predict", {...asked, explain: true}, page.signal)]);
  const r = predicted.plans[0];
  root.append(h("h1", {}, planCode(plan)),
    h("p", {}, "Step time " + duration(r.step_time_s) + ", 90 % interval " + duration(r.step_time_lo_s) + " – " + duration(r.step_time_hi_s) + ", memory " + sig(r.mem_gib, 3) + " GiB. Predicted by: " + r.by + "."),
    ...r.warnings.map((w) => h("p", {class: "note"}, w)), nearest(near), stacks(r, q, page));
}

const link = (url, text) => /^https:\/\//.test(url || "") ? h("a", {href: url, rel: "noreferrer"}, text) : text;

function nearest(near) {
  const section = h("section", {"aria-labelledby": "h-near"}, h("h2", {id: "h-near"}, "Nearest measurements"));
  if (!near) {
    section.append(h("p", {}, "This page has no server and no measurements: the prediction comes from datasheets and published calibrations alone. “pacer serve --demo” has the same page with measurements."));
    return section;
  }
  if (!near.rows.length) {
    section.append(h("p", {}, "The store has no measurements: the prediction comes from datasheets and published calibrations alone. “pacer import” reads published ones, and “pacer calibrate” measures your own devices."));
    return section;
  }
  const d = near.rows[0].distance, off = near.rows.filter((r) => r.predicted && r.step_time_s > 0 && !r.doubt).map((r) => Math.abs(r.predicted.step_time_s / r.step_time_s - 1)).sort((a, b) => a - b);
  section.append(h("p", {}, "Of " + big(near.compared) + " measurements. Distance 0 is the same configuration; a factor of two in one size, or another name, adds its weight. " +
    (d === 0 ? "This plan itself was measured." : "The nearest is at " + sig(d, 3) + ", and differs in " + near.rows[0].differs.map((x) => x.what).join(", ") + ".") +
    (near.rows.every((r) => r.differs.some((x) => x.what === "accelerator")) ? " None of them is on this accelerator: they say little about this question." : "") +
    (off.length ? " Predictions of these rows are off by " + percent(off[Math.floor(off.length / 2)]) + " in the median" +
      (near.rows.some((r) => r.predicted && r.predicted.by !== "analytic") ? "; where a model was fitted to a row that is no test, and Operate has the errors of rows left out." : ".") : "")));
  section.append(plainTable([
    {name: "Distance", num: true, cell: (r) => sig(r.distance, 3)},
    {name: "Measured on", cell: (r) => h("span", {}, r.model, h("br"), r.devices + " × " + r.accelerator)},
    {name: "Differs from the question in", cell: (r) => h("span", {class: "differs"}, r.differs.length ? r.differs.map((x) => h("span", {title: "asked: " + x.asked}, x.what + " " + x.measured)) : "nothing")},
    {name: "Measured", num: true, cell: (r) => r.outcome === "ok" || r.outcome === "OK" ? r.step_time_s > 0 ? duration(r.step_time_s) : "memory only" : "out of memory"},
    {name: "Predicted", num: true, cell: (r) => r.predicted ? h("span", {title: "90 %: " + duration(r.predicted.step_time_lo_s) + " – " + duration(r.predicted.step_time_hi_s) + ", by " + r.predicted.by}, duration(r.predicted.step_time_s)) : "–"},
    {name: "Off", num: true, cell: (r) => r.predicted && r.step_time_s > 0 ? (r.predicted.step_time_s > r.step_time_s ? "+" : "−") + percent(Math.abs(r.predicted.step_time_s / r.step_time_s - 1)) : "–"},
    {name: "GiB", num: true, cell: (r) => r.mem_gib > 0 ? sig(r.mem_gib, 3) : "–"},
    {name: "Source", cell: (r) => h("span", {class: "source"}, link(r.url, r.source), r.origin && h("span", {class: "unit"}, " " + r.origin), r.document && h("span", {class: "unit"}, " " + r.document), r.doubt && h("span", {class: "doubt"}, "in doubt: " + r.doubt))},
  ], near.rows, "Nearest measurements"));
  return section;
}

// stacks are the training stacks that the prediction assumes. A button asks the same for one of them.
function stacks(r, q, page) {
  const list = r.explain.stacks;
  return h("section", {"aria-labelledby": "h-stack"}, h("h2", {id: "h-stack"}, "Training stack"),
    h("p", {}, list.length === 1 ? "The question states the stack, or only one is plausible." : "The question does not state the stack: the prediction is over these, by their probability. Stating one narrows the interval."),
    plainTable([
      {name: "Stack", cell: (s) => s.framework || "not named"},
      {name: "Probability", num: true, cell: (s) => percent(s.probability)},
      {name: "Step time, if stated", num: true, cell: (s) => duration(r.step_time_s * s.step_ratio)},
      {name: "Change", num: true, cell: (s) => s.step_ratio === 1 ? "none" : (s.step_ratio > 1 ? "+" : "−") + percent(Math.abs(s.step_ratio - 1))},
      {name: "Attention", cell: (s) => s.parts.attention || "–"}, {name: "Kernels", cell: (s) => s.parts.launch || "–"}, {name: "Overlap", cell: (s) => s.parts.overlap || "–"},
      {about: "assume it", cell: (s) => s.framework ? h("button", {type: "button", onclick: () => page.change({framework: s.framework, plan: q.plan})}, q.framework === s.framework ? "assumed" : "Assume it") : ""},
    ], list.slice(0, 20), "Training stacks"),
    q.framework && h("p", {}, h("button", {type: "button", onclick: () => page.change({framework: undefined, plan: q.plan})}, "Assume any stack")));
}
