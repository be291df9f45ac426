// The question, and the view that answers it. The URL holds the question; the history of the browser holds those before.

import {h, local, api, example, fields, models, accelerators, parse, readURL, urlOf, problemBox, brief} from "./core.js";

const views = {
  answer: ["Plan", () => import("./answer.js")],
  trust: ["Trust", () => import("./trust.js")],
  explore: ["Explore", () => import("./explore.js")],
  check: ["Check", () => import("./check.js")],
  simulate: ["Simulate", () => import("./simulate.js")],
  operate: ["Operate", () => import("./operate.js")],
};
if (local) for (const needsServer of ["simulate", "operate"]) delete views[needsServer];
const [nav, form, view, status] = ["views", "question", "view", "status"].map((id) => document.getElementById(id));
let question = {}, ending = null;

// go asks q. Where the URL cannot hold it, only this tab does.
function go(q, replace) {
  const url = urlOf(q);
  history[replace ? "replaceState" : "pushState"]({q}, "", url || location.pathname);
  show(q, url ? [] : ["The question is longer than 8 kB, so the address does not hold it: it cannot be shared or loaded again."]);
}

// change asks the question with other values; without a plan, since that was one for the old values.
const change = (more) => go({...question, plan: undefined, ...more});

// update puts values into the URL that need no new answer.
function update(more) {
  question = {...question, ...more};
  history.replaceState({q: question}, "", urlOf(question) || location.pathname);
  drawNav();
}

function drawNav() {
  const now = question.view || "answer", held = nav.contains(document.activeElement);
  nav.replaceChildren(...Object.entries(views).map(([name, [title]]) => h("a", {
    href: urlOf({...question, view: name}) || location.pathname + "?view=" + name, "aria-current": now === name && "page",
    onclick: (e) => {
      if (e.metaKey || e.ctrlKey || e.shiftKey) return;
      e.preventDefault();
      go({...question, view: name});
    },
  }, title)));
  if (held) nav.querySelector("[aria-current]")?.focus();
}

async function show(q, notes) {
  ending?.abort();
  const ctl = ending = new AbortController();
  const complete = (q.model || q.network) && q.accelerator && q.devices && q.batch;
  question = complete || Object.keys(q).some((k) => k !== "view") ? q : {...example, ...q};
  drawNav();
  drawForm();
  form.hidden = ["check", "simulate"].includes(question.view);
  const [title, load] = views[question.view || "answer"] || [];
  view.setAttribute("aria-busy", "true");
  view.setAttribute("aria-label", title || "Answer");
  document.title = (title || "?") + " – " + (question.network?.name || question.model || "") + " – Pacer";
  view.replaceChildren(...notes.map((n) => h("p", {class: "note", role: "status"}, n)), h("p", {class: "empty"}, "…"));
  const root = h("div");
  try {
    if (!load) throw new Error("view " + JSON.stringify(question.view) + " is unknown, want " + Object.keys(views).join(", "));
    if (!["check", "operate", "simulate"].includes(question.view) && !((question.model || question.network) && question.accelerator && question.devices && question.batch)) {
      throw new Error("The question lacks a model, an accelerator, devices or a batch.");
    }
    const module = await load();
    if (ctl.signal.aborted) return;
    await module.show(root, question, {signal: ctl.signal, change, update});
  } catch (err) {
    if (ctl.signal.aborted) return;
    root.append(problemBox(err));
  }
  if (ctl.signal.aborted) return;
  view.lastElementChild.replaceWith(root);
  view.setAttribute("aria-busy", "false");
  status.textContent = (title || "Answer") + ": " + (root.querySelector("h1, .problem")?.textContent || "");
  root.dispatchEvent(new Event("shown"));
}

// ---- The form ----

const labels = {
  model: ["Model", "a name of the catalog, or organisation/name of the Hugging Face Hub"], accelerator: ["Accelerator", "type of device"],
  devices: ["Devices", "how many"], batch: ["Global batch", "samples per optimizer step"], seq: ["Sequence", "tokens per sample; the model's own if empty"],
  framework: ["Training stack", "such as Megatron Core@0.13; any plausible one if empty"], adapter: ["Adapter", "such as lora:16 or qlora:64; full training if empty"],
  precision: ["Precision", "such as bf16 or fp8"], gbps: ["Network, Gbit/s", "of a node, one direction; that of the usual node if empty"],
};
const more = ["framework", "adapter", "precision", "gbps"], numbers = new Set(["devices", "batch", "seq", "gbps"]);

function field(name, list) {
  const [label, about] = labels[name];
  return h("label", {class: "field " + name}, h("span", {}, label),
    h("input", {name, value: question[name] ?? "", title: about, placeholder: name === "seq" ? "the model's" : null, inputmode: numbers.has(name) && "decimal", list: list && name + "-names",
      autocomplete: "off", spellcheck: "false", maxlength: 256, onfocus: list && ((e) => offer(e.target.nextElementSibling, list))}),
    list && h("datalist", {id: name + "-names"}));
}

async function offer(datalist, list) {
  if (datalist.childElementCount) return;
  const entries = await list().catch(() => []);
  datalist.replaceChildren(...entries.map((e) => h("option", {value: e.name})));
}

function drawForm() {
  const wrong = h("p", {class: "wrong", role: "alert"});
  const open = more.some((n) => question[n] != null), held = form.contains(document.activeElement) && document.activeElement.name;
  form.replaceChildren(h("form", {onsubmit: submit, novalidate: true, autocomplete: "off"},
    h("div", {class: "fields"},
      question.network ? h("div", {class: "field model"}, h("span", {}, "Model"), h("div", {class: "own"}, h("span", {}, question.network.name),
        h("button", {type: "button", onclick: () => change({network: undefined, model: example.model})}, "by name"))) : field("model", models),
      field("accelerator", accelerators), field("devices"), field("batch"), field("seq"), h("button", {class: "go"}, "Predict")),
    wrong,
    h("div", {class: "extras"}, h("details", {open}, h("summary", {}, "Stack, adapter, precision, network"), h("div", {class: "fields"}, more.map((n) => field(n)))),
      h("details", {class: "paste"}, h("summary", {}, "A model of your own"), paste(wrong)))));
  if (held !== false) (form.querySelector("[name=" + (held || "none") + "]") || form.querySelector(".go")).focus();

  function submit(e) {
    e.preventDefault();
    const q = {view: question.view, network: question.network, tokens: question.tokens, prices: question.prices, with: question.with, batches: question.batches};
    wrong.textContent = "";
    for (const input of e.target.querySelectorAll("input[name]")) {
      input.removeAttribute("aria-invalid");
      if (!input.value.trim()) continue;
      try {
        q[input.name] = parse(input.name, input.value);
      } catch (err) {
        wrong.textContent = err.message.replace(input.name, labels[input.name][0]) + ".";
        input.setAttribute("aria-invalid", "true");
        input.focus();
        return;
      }
    }
    for (const name of ["model", "accelerator", "devices", "batch"]) {
      if (q[name] == null && !(name === "model" && q.network)) {
        wrong.textContent = labels[name][0] + " is missing: " + labels[name][1] + ".";
        const input = e.target.elements[name];
        input.setAttribute("aria-invalid", "true");
        input.focus();
        return;
      }
    }
    go(q);
  }
}

const maxPaste = 1 << 20; // characters of a config.json; real ones have a few thousand

// paste reads the shape of a network from a config.json. Only that shape gets into the question.
function paste(wrong) {
  const area = h("textarea", {rows: 6, "aria-label": "config.json of the Hugging Face Hub", placeholder: '{"architectures": ["LlamaForCausalLM"], "hidden_size": 4096, …}', spellcheck: "false"});
  const said = h("p", {class: "hint", role: "status"});
  const read = async () => {
    wrong.textContent = said.textContent = "";
    try {
      if (area.value.length > maxPaste) throw new Error("The text has " + area.value.length + " characters, more than a config.json: paste that file, not weights.");
      let config;
      try { config = JSON.parse(area.value); } catch (err) { throw new Error("The text is no JSON: " + err.message); }
      const out = await api("/v1/network", {config});
      said.textContent = brief(out.params) + " parameters. " + out.warnings.join(" ");
      change({network: out.network, model: undefined});
    } catch (err) {
      wrong.textContent = err.message;
    }
  };
  const take = async (file) => {
    if (!file) return;
    if (file.size > maxPaste) { wrong.textContent = file.name + " has " + file.size + " bytes, more than a config.json."; return; }
    area.value = await file.text();
    read();
  };
  return h("div", {class: "own-model", ondragover: (e) => e.preventDefault(), ondrop: (e) => { e.preventDefault(); take(e.dataTransfer.files[0]); }},
    h("p", {class: "hint"}, "Paste or drop the config.json of a model. Its shape stays in the address, nothing else."),
    area, h("div", {class: "tools"}, h("button", {type: "button", onclick: read}, "Use this model"),
      h("label", {class: "file"}, "or a file: ", h("input", {type: "file", accept: ".json,application/json", onchange: (e) => take(e.target.files[0])}))), said);
}

addEventListener("popstate", (e) => {
  const {q, wrong} = readURL(location.search);
  show(e.state?.q || q, e.state ? [] : wrong);
});
// The link to the answer changes no address, since each address is a question.
document.querySelector(".skip").addEventListener("click", (e) => { e.preventDefault(); view.focus(); });
document.querySelector(".brand").addEventListener("click", (e) => { e.preventDefault(); go({}); });
{
  const {q, wrong} = readURL(location.search);
  show(history.state?.q || q, wrong);
}
