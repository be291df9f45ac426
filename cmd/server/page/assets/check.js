// A launch file, read as pacer check reads it: what was understood, whether the plan fits, how fast it is, what would be better.

import {h, api, parse, big, brief, duration, percent, sig, planCode, plainTable, tiles} from "./core.js";
import {copy} from "./answer.js";

const labels = {
  accelerator: ["Accelerator", "type of device"], devices: ["Devices", "that of the file if empty"], model: ["Model", "that of the file if empty"],
  seq: ["Sequence", "tokens per sample; that of the file if empty"], measured: ["Measured step, s", "time of a step of yours, to compare"], to: ["Port to", "another type of device"],
  price: ["Price", "per device-hour, in any currency"],
};
const most = 80 << 10; // characters of a launch file

// A file for those who have none at hand.
const sample = `#!/bin/bash
torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py \\
  --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 \\
  --group-query-attention --num-query-groups 8 --swiglu --vocab-size 128256 \\
  --untie-embeddings-and-output-weights --seq-length 8192 --max-position-embeddings 8192 \\
  --tensor-model-parallel-size 4 --sequence-parallel --use-distributed-optimizer \\
  --micro-batch-size 1 --global-batch-size 128 --recompute-granularity full \\
  --recompute-method uniform --recompute-num-layers 1 --bf16
`;

// The file stays in this tab: it is in no address.
const kept = {name: "launch.sh", text: "", values: {}};

export async function show(root, q, page) {
  const wrong = h("p", {class: "wrong", role: "alert"}), result = h("div", {"aria-live": "polite"});
  const area = h("textarea", {rows: 10, name: "text", "aria-label": "Launch file", spellcheck: "false", placeholder: "torchrun --nproc-per-node 8 pretrain_gpt.py \\\n  --tensor-model-parallel-size 8 …"}, kept.text);
  const first = {accelerator: q.accelerator, ...kept.values};
  const form = h("form", {onsubmit: (e) => { e.preventDefault(); read(); }, novalidate: true, autocomplete: "off"},
    h("div", {class: "own-model", ondragover: (e) => e.preventDefault(), ondrop: (e) => { e.preventDefault(); take(e.dataTransfer.files[0]); }},
      h("p", {class: "hint"}, "Paste or drop a launch file of Megatron-LM, torchtitan, DeepSpeed, NeMo, axolotl, Hugging Face or MaxText. Nothing of it is run, and it is not stored."),
      area, h("div", {class: "tools"}, h("label", {class: "file"}, "or a file: ", h("input", {type: "file", onchange: (e) => take(e.target.files[0])})),
        h("label", {class: "file"}, "called ", h("input", {name: "file", value: kept.name, maxlength: 256, spellcheck: "false", title: "its end tells YAML, TOML, JSON and scripts apart"})))),
    h("div", {class: "fields"}, Object.entries(labels).map(([name, [label, about]]) => h("label", {class: "field"}, h("span", {}, label),
      h("input", {name, value: first[name] ?? "", title: about, spellcheck: "false", maxlength: 256}))), h("button", {class: "go"}, "Check")),
    wrong);
  root.append(h("h1", {}, "Check a launch file"), form, result);
  if (kept.text) await read();
  else result.append(h("button", {type: "button", onclick: () => { area.value = sample; read(); }}, "Check an example"));

  async function take(file) {
    if (!file) return;
    if (file.size > most) { wrong.textContent = file.name + " has " + file.size + " bytes, more than a launch file."; return; }
    area.value = await file.text();
    form.elements.file.value = file.name;
    read();
  }

  async function read() {
    wrong.textContent = "";
    try {
      const v = Object.fromEntries([...new FormData(form)].map(([k, text]) => [k, String(text)]));
      for (const name of Object.keys(labels)) v[name] = v[name].trim();
      if (!v.text.trim()) throw new Error("There is no launch file yet.");
      if (v.text.length > most) throw new Error("The text has " + v.text.length + " characters, more than a launch file.");
      Object.assign(kept, {name: v.file.trim(), text: v.text, values: Object.fromEntries(Object.keys(labels).map((name) => [name, v[name]]))});
      const number = (name, as) => v[name] ? parse(as, v[name]) : undefined;
      const asked = {file: kept.name, text: v.text, accelerator: v.accelerator || undefined, model: v.model || undefined, devices: number("devices", "devices"), seq: number("seq", "seq"),
        measured_s: number("measured", "tokens"), price: number("price", "tokens"), to: v.to || undefined};
      const out = await api("/v1/check", asked, page.signal);
      result.replaceChildren(...answer(out, page, asked));
    } catch (err) {
      if (err.name === "AbortError") return;
      result.replaceChildren();
      wrong.textContent = err.message;
    }
  }
}

function answer(c, page, asked) {
  const facts = Object.entries(c.understood).sort(([a], [b]) => a < b ? -1 : 1), r = c.plan;
  const titles = {fits: "The plan fits", unsure: "The plan may or may not fit", "does not fit": "The plan does not fit", illegal: "The plan is illegal"};
  const notes = [...c.problems.map((p) => ["problem", p]), ...(c.missing ? [["note", "To go on: " + c.missing.why + "."]] : [])];
  return [
    h("h2", {}, c.missing ? "A file of " + c.format : (titles[c.verdict] || "The memory of the devices is not known") + (c.fit_probability > 0 ? (c.verdict === "fits" ? ", with a probability of " : ": the probability that it fits is ") + sig(100 * c.fit_probability, 3) + " %" : "")),
    ...notes.map(([kind, text]) => h("p", {class: kind}, text)),
    r && tiles([["Step", duration(r.step_time_s), "", "90 %: " + duration(r.step_time_lo_s) + " – " + duration(r.step_time_hi_s)], ["Memory", sig(r.mem_gib, 3), "GiB of a device"], ["MFU", percent(r.mfu)],
      c.days > 0 && ["Training", sig(c.days, 3), "days", brief(c.tokens) + " tokens, " + big(c.device_hours) + " device-hours"], c.cost > 0 && ["Cost", big(c.cost)]]),
    r && h("p", {}, planCode(r.plan), " ", h("button", {type: "button", onclick: () => page.change({view: undefined, network: c.network, model: c.network ? undefined : c.model, accelerator: asked.accelerator || asked.to,
      devices: r.devices, batch: r.global_batch, seq: asked.seq || c.understood.seq_len, plan: r.plan})}, "Ask about it")),
    c.measured && comparison(c.measured),
    c.changes.length > 0 && changes(c.changes, "Better by one change"),
    c.port && port(c.port),
    h("h2", {}, "What was understood"),
    h("p", {class: "facts"}, facts.map(([name, value]) => h("code", {}, name + "=" + value))),
    c.assumed.length > 0 && [h("h3", {}, "Assumed"), h("ul", {}, c.assumed.map((a) => h("li", {}, a)))],
    c.uncounted_keys.length > 0 && [h("h3", {}, "Not counted, so that the interval is wider"), h("ul", {}, c.uncounted_keys.map((u) => h("li", {}, h("code", {}, u.key + "=" + u.value), ": " + u.why)))],
    c.unknown_keys.length > 0 && [h("h3", {}, "Not known, so that the interval is wider"), h("p", {}, h("code", {}, c.unknown_keys.join(" ")))],
    c.unset_variables.length > 0 && h("p", {class: "note"}, "Shell variables without a value: " + c.unset_variables.join(" ")),
  ].flat(2).filter(Boolean);
}

function changes(list, title) {
  return h("section", {"aria-label": title}, h("h2", {}, title), plainTable([
    {name: "Change", cell: (x) => h("code", {}, x.change)}, {name: "Gain", num: true, cell: (x) => (x.gain < 0 ? "−" : "+") + percent(Math.abs(x.gain))},
    {name: "Step", num: true, cell: (x) => duration(x.step_time_s)}, {name: "GiB", num: true, cell: (x) => sig(x.mem_gib, 3)}, {name: "Memory", cell: (x) => x.verdict},
  ], list, title), list.map((x) => x.diff ? diff(x.change, x.diff) : (x.elsewhere || x.no_diff) && h("p", {class: "note"}, "No diff of ", h("code", {}, x.change), ": " + (x.elsewhere || x.no_diff))));
}

function diff(title, text) {
  const said = h("span", {class: "hint", role: "status"});
  return h("details", {class: "block"}, h("summary", {}, "Diff: " + title), h("div", {class: "tools"}, h("button", {type: "button", onclick: () => copy(text, said)}, "Copy"), said),
    h("pre", {tabindex: 0, "aria-label": "Diff of " + title}, h("code", {}, text)));
}

const port = (p) => h("section", {"aria-label": "Port"}, h("h2", {}, "On " + p.accelerator),
  p.same_plan && h("p", {}, "The same plan: " + duration(p.same_plan.step_time_s) + " a step, " + sig(p.same_plan.mem_gib, 3) + " GiB, " + p.same_plan.verdict + "."),
  h("p", {}, "The best plan: " + duration(p.best_plan.step_time_s) + " a step, " + sig(p.best_plan.mem_gib, 3) + " GiB. ", planCode(p.best_plan.plan)),
  p.held_plan && p.held_plan.plan !== p.best_plan.plan && h("p", {}, "The best that the file can hold: " + duration(p.held_plan.step_time_s) + " a step, " + sig(p.held_plan.mem_gib, 3) + " GiB. ", planCode(p.held_plan.plan)),
  p.notes.map((note) => h("p", {}, note + ".")), p.diff ? diff("the best that the file can hold", p.diff) : h("p", {}, "No diff: " + p.no_diff + "."));

const comparison = (m) => h("section", {"aria-label": "Measured"}, h("h2", {}, "The measured step"),
  h("p", {}, duration(m.step_time_s) + " is " + sig(m.ratio, 3) + " times the prediction" + (m.mfu > 0 ? ", an MFU of " + percent(m.mfu) : "") + ". Where the time may go:"),
  plainTable([{name: "Reason", cell: (x) => x.cause}, {name: "Probability", num: true, cell: (x) => percent(x.probability)}], m.causes, "Reasons"));
