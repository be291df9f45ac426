// The answer to a question: the best plans, the memory and the time of one of them, changes that make it fit, and its launch file.

import {h, api, ApiError, body, tokensOf, accelerators, frameworks, named, table, plainTable, bar, tiles, planCode, sig, big, percent, duration, problemBox} from "./core.js";

const most = 200; // plans of the first answer; a button loads the others

// partNames are the parts of memory, in the order of the bar, and what they are.
const memory = [["parameters", "weights"], ["gradients", "gradients"], ["optimizer", "optimizer states"], ["gathered", "gathered shards in hand"], ["activations", "activations kept for the backward pass"],
  ["working", "the layer or logits being worked on"], ["buffers", "communication buffers"], ["overhead", "context, communicators, fragmentation"]];
const time = [["compute", "forward and backward"], ["recompute", "forward work done again"], ["tp", "exposed tensor parallel traffic"], ["cp", "exposed context parallel traffic"],
  ["ep", "exposed expert parallel traffic"], ["pipeline", "pipeline bubble and transfers between stages"], ["dp", "exposed data parallel and ZeRO traffic"], ["optimizer", "optimizer"],
  ["offload", "host link and optimizer on CPUs"], ["launch", "waiting for kernel launches"], ["fixed", "fixed cost of a step"]];

export async function show(root, q, page) {
  const ask = (more) => api("/v1/plan", body(q, {devices: q.devices, ...more}), page.signal);
  let answer;
  try {
    answer = await ask({top: most, explain: true});
  } catch (err) {
    if (!(err instanceof ApiError) || !err.problem.infeasible) throw err;
    return infeasible(root, q, page, err);
  }
  const tokens = await tokensOf(q);
  const detail = h("div", {id: "plan"});
  let chosen = 0; // an answer to an earlier choice may come after that to the last one
  const choose = async (plan, row) => {
    const choice = ++chosen;
    detail.setAttribute("aria-busy", "true");
    const parts = await details(plan, row, q, page, tokens).catch((err) => [problemBox(err)]);
    if (page.signal.aborted || choice !== chosen) return;
    detail.replaceChildren(...parts);
    detail.setAttribute("aria-busy", "false");
  };
  const best = answer.plans[0], picked = q.plan || best.plan;
  await choose(picked, answer.plans.find((r) => r.plan === picked && r.explain));
  const ranked = await ranking(answer, q, page, tokens, ask, picked, choose);
  root.append(detail, ...ranked);
}

// details are the sections on one plan. row has its prediction with explain, else it is asked for.
async function details(plan, row, q, page, tokens) {
  const [predicted, fit] = await Promise.all([
    row || api("/v1/predict", body(q, {plan, devices: q.devices, explain: true}), page.signal).then((out) => out.plans[0]),
    api("/v1/fit-check", body(q, {plan, devices: q.devices}), page.signal),
  ]);
  return [headline(predicted, fit, tokens), remedies(fit, page), h("div", {class: "bars"}, memoryBar(fit, predicted), waterfall(predicted)), pipeline(predicted, fit, page), launch(predicted, q, page)].filter(Boolean);
}

function headline(r, fit, tokens) {
  return h("section", {"aria-labelledby": "h-plan"}, h("h1", {id: "h-plan"}, fit.fits ? "" : fit.verdict === "unsure" ? "May not fit: " : "Does not fit: ", planCode(r.plan)),
    r.warnings.map((w) => h("p", {class: "note"}, w)),
    tiles([
      ["Step time", duration(r.step_time_s), "", "90 %: " + duration(r.step_time_lo_s) + " – " + duration(r.step_time_hi_s)],
      tokens > 0 ? ["Throughput", big(r.samples_per_s * tokens), "tokens/s", big(r.samples_per_s * tokens / r.devices) + " per device"] : ["Throughput", big(r.samples_per_s), "samples/s"],
      ["Model FLOP/s", sig(r.tflops_per_gpu, 3), "TFLOP/s", "per device"],
      r.mfu && ["MFU", percent(r.mfu), "", "of " + sig(r.tflops_per_gpu / r.mfu, 3) + " TFLOP/s"],
      ["Memory", sig(r.mem_gib, 3), "GiB", fit.device_gib > 0 ? fit.verdict + ", " + percent(fit.probability) + " sure, of " + sig(fit.device_gib, 3) + " GiB" : "the device's is not known"],
      ["Devices", big(r.devices), "", "nodes of " + r.shape],
    ]));
}

const points = {loss: "at the loss, when the logits are in memory"};

function memoryBar(fit, r) {
  const parts = memory.map(([name, what], i) => ({name: what, size: fit.parts_gib[name] || 0, color: "p" + (i + 1), text: sig(fit.parts_gib[name] || 0, 3) + " GiB"})).filter((p) => p.size > 0);
  const whole = Math.max(fit.device_gib, fit.mem_gib, 1e-9), at = r.explain?.mem_peak;
  const marks = fit.device_gib > 0 ? [{name: "a plan counts as fitting up to " + sig(fit.budget_gib, 3) + " GiB", size: fit.budget_gib}, {name: "the device has " + sig(fit.device_gib, 3) + " GiB", size: fit.device_gib}] : [];
  return h("section", {"aria-labelledby": "h-memory"}, h("h2", {id: "h-memory"}, "Memory of the fullest device"),
    at && h("p", {}, "The peak is " + (at.stages > 1 ? "on pipeline stage " + (at.stage + 1) + " of " + at.stages + ", " : "") + (points[at.point] || (at.point ? "in the " + at.point : "at a moment that is not known")) + "."),
    bar(parts, whole, marks, sig(fit.mem_gib, 3) + " GiB of " + sig(fit.device_gib, 3) + " GiB"),
    partsTable(parts.map((p) => [p, sig(p.size, 3), percent(p.size / fit.mem_gib)]), "GiB", [["all", sig(fit.mem_gib, 3), ""], fit.budget_gib > 0 && ["fits up to", sig(fit.budget_gib, 3), ""],
      fit.device_gib > 0 && ["the device has", sig(fit.device_gib, 3), ""], fit.host_gib > 0 && ["host memory, all devices together", big(fit.host_gib), ""]]));
}

function partsTable(rows, unit, sums) {
  return h("table", {class: "parts"}, h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "part"), h("th", {scope: "col", class: "num"}, unit), h("th", {scope: "col", class: "num"}, "share"))),
    h("tbody", {}, rows.map(([p, size, share]) => h("tr", {}, h("th", {scope: "row"}, h("span", {class: "part"}, h("span", {class: "swatch " + p.color}), p.name)), h("td", {class: "num"}, size), h("td", {class: "num"}, share))),
      sums.filter(Boolean).map(([name, size, share]) => h("tr", {class: "sum"}, h("th", {scope: "row"}, name), h("td", {class: "num"}, size), h("td", {class: "num"}, share)))));
}

// waterfall draws the parts of a step one after the other, then the step with its interval.
function waterfall(r) {
  const all = time.map(([name, what]) => ({what, size: r.explain.step_s[name] || 0})).filter((p) => p.size > 0), whole = Math.max(r.step_time_hi_s, r.step_time_s, 1e-12);
  let at = 0;
  const rows = all.map((p) => {
    const from = at;
    at += p.size;
    return h("tr", {}, h("th", {scope: "row"}, p.what), h("td", {class: "fall"}, h("span", {class: "step", style: {left: 100 * from / whole + "%", width: 100 * p.size / whole + "%"}})),
      h("td", {class: "num"}, duration(p.size)), h("td", {class: "num"}, percent(p.size / r.step_time_s)));
  });
  const {step_time_lo_s: lo, step_time_hi_s: hi} = r;
  return h("section", {"aria-labelledby": "h-step"}, h("h2", {id: "h-step"}, "Time of a step"),
    h("table", {class: "parts falls"}, h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "part"), h("th", {scope: "col"}, h("span", {class: "hidden"}, "place in the step")), h("th", {scope: "col", class: "num"}, "time"), h("th", {scope: "col", class: "num"}, "share"))),
      h("tbody", {}, rows, h("tr", {class: "sum"}, h("th", {scope: "row"}, "step, 90 % interval"),
        h("td", {class: "fall"}, h("span", {class: "step all", style: {left: 0, width: 100 * r.step_time_s / whole + "%"}}), h("span", {class: "between", style: {left: 100 * lo / whole + "%", width: 100 * (hi - lo) / whole + "%"}})),
        h("td", {class: "num"}, duration(r.step_time_s)), h("td", {class: "num"})))),
    h("p", {class: "hint"}, "The true step time is between " + duration(lo) + " and " + duration(hi) + " with a probability of 90 %. Predicted by: " + r.by + "."));
}

// remedies are the changes after which the plan fits, as buttons that apply them.
function remedies(fit, page) {
  if (fit.fits) return null;
  const list = fit.fixes.map((f) => fixButton(f.change === "another plan" ? "another plan" : f.change, "→ " + sig(f.mem_gib, 3) + " GiB, " + sig(f.samples_per_s, 3) + " samples/s", () => page.change({plan: f.plan, devices: f.devices})));
  return h("section", {class: "problem", "aria-labelledby": "h-fit"}, h("h2", {id: "h-fit"}, "What would make it fit"), h("p", {}, fit.why),
    list.length ? h("div", {class: "fixes"}, list) : h("p", {}, "No single change of this plan is enough."));
}

const fixButton = (change, effect, apply) => h("button", {type: "button", onclick: apply}, h("strong", {}, change), h("span", {}, effect));

// infeasible says why no plan fits, and tries changes of the question. Those that help become buttons.
async function infeasible(root, q, page, err) {
  const {nearest, remedy} = err.problem.infeasible, list = h("div", {class: "fixes"}), said = h("p", {class: "hint", role: "status"}, "Trying changes …");
  root.append(h("section", {class: "problem", role: "alert"}, h("h1", {}, "No plan fits"), h("p", {}, err.message)),
    h("section", {"aria-labelledby": "h-fit"}, h("h2", {id: "h-fit"}, "What would make it fit"), said, list));
  const tries = await changes(q, remedy);
  (async () => {
    let found = 0;
    for (const [name, more] of tries) {
      const asked = {...q, ...more};
      try {
        const {plans: [p]} = await api("/v1/plan", body(asked, {devices: asked.devices, top: 1}), page.signal);
        list.append(fixButton(name, "→ " + sig(p.mem_gib, 3) + " GiB, " + duration(p.step_time_s) + " a step", () => page.change(more)));
        found++;
      } catch (e) {
        if (page.signal.aborted) return;
        if (!(e instanceof ApiError)) throw e;
      }
    }
    said.textContent = found ? "Each of these alone makes it fit." : "None of the changes tried makes it fit: " + tries.map(([name]) => name).join(", ") + ".";
  })();
  if (nearest) root.append(h("section", {"aria-labelledby": "h-near"}, h("h2", {id: "h-near"}, "The nearest plan"), h("p", {}, planCode(nearest.plan)), nearest.why && h("p", {}, nearest.why)));
}

// changes are single changes of a question that may make it fit, each with its name.
async function changes(q, remedy) {
  const out = [], list = await accelerators(), now = named(list, q.accelerator), tokens = await tokensOf(q);
  const counts = new Set(remedy?.devices ? [remedy.devices] : [2, 4, 8].map((n) => n * q.devices));
  for (const n of counts) out.push([n + " devices", {devices: n}]);
  if (!q.adapter) out.push(["adapter lora:16", {adapter: "lora:16"}], ["adapter qlora:16", {adapter: "qlora:16"}]);
  if (tokens >= 1024) out.push(["sequences of " + tokens / 2 + " tokens", {seq: Math.floor(tokens / 2)}]);
  if (now) {
    const larger = list.filter((a) => a.vendor === now.vendor && a.mem_bytes > 1.2 * now.mem_bytes && (a.bf16_flops || 0) >= 0.5 * (now.bf16_flops || 0)).sort((a, b) => a.mem_bytes - b.mem_bytes);
    for (const a of [...new Set([larger[0], larger.at(-1)])]) if (a) out.push([a.name, {accelerator: a.name}]);
  }
  return out;
}

// pipeline is the timeline of a plan with stages, drawn when it is opened.
function pipeline(r, fit, page) {
  if (!(r.plan_parts.pp > 1)) return null;
  const place = h("div");
  return h("details", {class: "block", ontoggle: async (e) => {
    if (e.target.open && !place.childElementCount) (await import("./timeline.js")).show(place, r, fit, page);
  }}, h("summary", {}, "Pipeline of a step"), place);
}

// launch is the file that starts the plan, under a framework of the reader's choice.
function launch(r, q, page) {
  const out = h("div", {"aria-live": "polite"}), select = h("select", {id: "emit", onchange: write});
  async function write() {
    if (!select.value) return;
    try {
      const {launch: f} = await api("/v1/predict", body(q, {plan: r.plan, devices: q.devices, emit: select.value}), page.signal);
      const copied = h("span", {class: "hint", role: "status"});
      out.replaceChildren(h("div", {class: "tools"}, h("strong", {}, f.file), h("span", {class: "hint"}, f.version), h("button", {type: "button", onclick: () => copy(f.text, copied)}, "Copy"), copied),
        h("pre", {tabindex: 0, "aria-label": f.file}, h("code", {}, f.text)), f.notes.length && h("ul", {class: "hint"}, f.notes.map((n) => h("li", {}, n))));
    } catch (err) {
      if (!page.signal.aborted) out.replaceChildren(problemBox(err));
    }
  }
  return h("details", {class: "block", ontoggle: async () => {
    if (select.childElementCount) return;
    select.append(h("option", {value: ""}, "choose a framework"), ...(await frameworks()).map((f) => h("option", {value: f.name}, f.name + ": " + f.doc)));
  }}, h("summary", {}, "Launch file"), h("div", {class: "tools"}, h("label", {for: "emit"}, "Framework"), select), out);
}

export async function copy(text, said) {
  try {
    await navigator.clipboard.writeText(text);
    said.textContent = "copied";
  } catch { // a page without https has no clipboard, but for localhost
    said.textContent = "select the text and copy it";
  }
}

// ---- The table of plans ----

const matches = (r, words) => words.every((w) => r.plan.includes(w) || r.verdict === w);

async function ranking(answer, q, page, tokens, ask, picked, choose) {
  const pinned = new Map(), compare = h("div", {id: "pinned", "aria-live": "polite"});
  const rank = new Map(answer.plans.map((r, i) => [r, i + 1]));
  let now = picked;
  const columns = [
    {name: "#", about: "rank", width: 3.4, num: true, value: (r) => rank.get(r), cell: (r) => String(rank.get(r))},
    {name: "Plan", about: "plan, by its text", width: 31, value: (r) => r.plan, cell: (r) => h("button", {type: "button", class: "link", "aria-pressed": String(r.plan === now), onclick: () => pick(r)}, h("code", {}, r.plan))},
    {name: "Step", about: "step time", width: 6, num: true, value: (r) => r.step_time_s, cell: (r) => duration(r.step_time_s)},
    {name: "90 %", about: "90 % interval of the step time", width: 10.5, num: true, cell: (r) => duration(r.step_time_lo_s) + " – " + duration(r.step_time_hi_s)},
    tokens > 0 ? {name: "Tokens/s", about: "tokens per second of all devices", width: 6.5, num: true, down: true, value: (r) => r.samples_per_s, cell: (r) => big(r.samples_per_s * tokens)}
      : {name: "Samples/s", about: "samples per second", width: 6.5, num: true, down: true, value: (r) => r.samples_per_s, cell: (r) => big(r.samples_per_s)},
    {name: "TFLOP/s", about: "model TFLOP/s per device", width: 6, num: true, down: true, value: (r) => r.tflops_per_gpu, cell: (r) => sig(r.tflops_per_gpu, 3)},
    {name: "MFU", about: "share of the device's rate", width: 5, num: true, down: true, value: (r) => r.mfu, cell: (r) => percent(r.mfu)},
    {name: "GiB", about: "memory of the fullest device", width: 5, num: true, value: (r) => r.mem_gib, cell: (r) => sig(r.mem_gib, 3)},
    {name: "Beats #1", about: "probability that it is faster than the first plan", width: 6, num: true, down: true, value: (r) => r.p_beats_best, cell: (r) => r.p_beats_best == null ? "" : percent(r.p_beats_best)},
    {name: "Pin", about: "put it into the comparison", width: 4.6, cell: (r) => h("button", {type: "button", class: "pin", "aria-pressed": String(pinned.has(r.plan)), "aria-label": "Pin " + r.plan, onclick: () => pin(r)}, pinned.has(r.plan) ? "✓" : "+")},
  ];
  const rest = answer.fitting > answer.plans.length && h("button", {type: "button", onclick: more}, "Load all " + big(Math.min(answer.fitting, 10000)));
  const place = h("div");
  let grid;
  const draw = (rows) => {
    grid = table(columns, rows, {label: "Plans", hint: "such as tp=2 zero=1", filter: matches, sort: {column: 0}, tools: rest || null, selected: (r) => r.plan === now});
    place.replaceChildren(grid.element);
  };
  async function more() {
    rest.disabled = true;
    try {
      const all = await ask({top: 0});
      all.plans.forEach((r, i) => rank.set(r, i + 1));
      rest.remove();
      draw(all.plans);
    } catch (err) {
      if (!page.signal.aborted) { rest.disabled = false; place.prepend(problemBox(err)); }
    }
  }
  async function pick(r) {
    now = r.plan;
    page.update({plan: now});
    grid.redraw();
    await choose(r.plan, r.explain && r);
  }
  function pin(r) {
    if (!pinned.delete(r.plan)) pinned.set(r.plan, r);
    grid.redraw();
    drawPinned();
  }
  function drawPinned() {
    const all = [...pinned.values()], keys = [...new Set(all.flatMap((r) => Object.keys(r.plan_parts)))].filter((k) => new Set(all.map((r) => String(r.plan_parts[k] ?? ""))).size > 1);
    compare.replaceChildren(...all.length ? [h("h3", {}, all.length === 1 ? "1 plan pinned; pin others to compare" : all.length + " plans compared; parts that are equal are left out"),
      plainTable([{name: "Plan", cell: (r) => h("code", {}, "#" + rank.get(r))}, ...keys.map((k) => ({name: k, cell: (r) => String(r.plan_parts[k] ?? "–")})), ...columns.slice(2, 9),
        {about: "unpin", cell: (r) => h("button", {type: "button", "aria-label": "Unpin " + r.plan, onclick: () => pin(r)}, "×")}], all, "Pinned plans")] : []);
  }
  draw(answer.plans);
  return [h("section", {"aria-labelledby": "h-plans"}, h("h2", {id: "h-plans"}, "Plans, best first"),
    h("p", {}, big(answer.evaluated) + " legal plans, " + big(answer.fitting) + " fit. A plan's name shows it above. Plans that beat the first with 10 % or more cannot be told from it."), compare, place)];
}
