// Scheduling policies on a simulated cluster: start simulations, follow them, and compare their figures.

import {h, api, file, withToken, big, duration, percent, sig, plainTable, table, charts, problemBox} from "./core.js";
import {keepDrawn} from "./charts.js";

const labels = {
  jobs: ["Jobs", "how many jobs are drawn, at most 2000"], rate: ["Jobs per hour", "mean rate at which they are submitted"],
  models: ["Models", "that the jobs train, separated by +"], cluster: ["Cluster", "nodes x devices x type, such as 4x8xH100"],
  policies: ["Policies", "separated by commas; pacer ls policies lists them"], start: ["Start cost, s", "time of a start or resume"],
  explain: ["Explain job", "its events, with their reasons; such as job-0007; nothing if empty"],
};

export async function show(root, q, page) {
  const first = {jobs: "100", rate: "20", models: (q.model || "llama3-8b") + "+opt-1.3b", cluster: "4x8x" + q.accelerator, policies: "fifo-backfill,srtf,rubick,pacer", start: "60", explain: ""};
  const wrong = h("p", {class: "wrong", role: "alert"}), own = h("input", {type: "file", accept: ".csv,text/csv"});
  const kept = h("div"), result = h("div", {"aria-live": "polite"});
  const form = h("form", {onsubmit: start, novalidate: true, autocomplete: "off"},
    h("div", {class: "fields"}, Object.entries(labels).map(([name, [label, about]]) => h("label", {class: "field " + (name === "policies" || name === "models" ? "model" : "")}, h("span", {}, label),
      h("input", {name, value: first[name], title: about, spellcheck: "false", maxlength: 1000}))), h("button", {class: "go"}, "Simulate")),
    wrong, h("p", {class: "hint"}, h("label", {class: "file"}, "Your own jobs in place of drawn ones, a CSV file with job_id, submit_s, gpus, duration_s and, if wanted, model and plan: ", own)));
  let open = null, ending = new AbortController();
  page.signal.addEventListener("abort", () => ending.abort());
  root.append(h("h1", {}, "Scheduling policies on a simulated cluster"), form, kept, result);
  await list();

  async function start(e) {
    e.preventDefault();
    wrong.textContent = "";
    try {
      const v = Object.fromEntries([...new FormData(form)].map(([k, text]) => [k, String(text).trim()]));
      const body = {cluster: v.cluster, policies: v.policies.split(/\s*,\s*/).filter(Boolean)};
      if (v.start) body.start_cost_s = amount("start", v.start);
      if (v.explain) body.explain = [v.explain];
      if (own.files[0]) {
        body.jobs = (await own.files[0].text()).split(/\r?\n/).filter(Boolean);
        if (/(^|,)model(,|$)/.test(body.jobs[0] || "")) body.truth = "fitted:hybrid";
      } else {
        body.workload = "jobs=" + amount("jobs", v.jobs) + ",per-hour=" + amount("rate", v.rate) + (v.models && ",models=" + v.models);
        if (v.models) body.truth = "fitted:hybrid";
      }
      const made = await api("/v1/simulations", body, page.signal);
      open = made.id;
      await list();
    } catch (err) {
      if (err.name !== "AbortError") wrong.textContent = err.message;
    }
  }

  // list shows the kept simulations, and follows the open one.
  async function list() {
    const {simulations} = await api("/v1/simulations", undefined, page.signal);
    open = (simulations.find((s) => s.id === open) || simulations[0])?.id;
    kept.replaceChildren();
    if (simulations.length) {
      kept.append(h("h2", {}, "Simulations"), plainTable([
        {name: "Number", cell: (s) => h("button", {type: "button", class: "link", "aria-pressed": String(s.id === open), onclick: () => { open = s.id; list(); }}, s.id)},
        {name: "Workload", cell: (s) => s.workload}, {name: "Cluster", cell: (s) => s.cluster}, {name: "Policies", cell: (s) => s.policies.join(", ")},
        {name: "Status", cell: (s) => s.status},
        {name: "", about: "delete", cell: (s) => h("button", {type: "button", onclick: async () => { await api("/v1/simulations/" + s.id, undefined, page.signal, "DELETE"); list(); }}, s.status === "waiting" || s.status === "running" ? "Cancel" : "Delete")},
      ], simulations, "Simulations"));
    }
    ending.abort();
    ending = new AbortController();
    result.replaceChildren();
    if (open) follow(open, ending.signal).catch((err) => { if (err.name !== "AbortError") result.replaceChildren(problemBox(err)); });
  }

  async function follow(id, signal) {
    const bar = h("progress", {"aria-label": "Jobs finished"});
    for (let shown = false; ; shown = true) {
      const s = await api("/v1/simulations/" + id, undefined, signal);
      if (s.status !== "waiting" && s.status !== "running") {
        if (shown) list(); // its status in the list
        else draw(s);
        return;
      }
      if (!shown) result.replaceChildren(h("p", {}, bar, " ", h("span", {class: "hint"})));
      bar.max = s.jobs * s.policies.length;
      bar.value = s.finished;
      bar.nextElementSibling.textContent = s.status === "waiting" ? "waits for the simulations before it" : big(s.finished) + " of " + big(bar.max) + " jobs finished";
      await new Promise((go) => setTimeout(go, 300));
      signal.throwIfAborted();
    }
  }

  function draw(s) {
    result.replaceChildren(h("h2", {}, "Simulation " + s.id));
    if (s.error) result.append(problemBox(new Error(s.error)));
    if (s.warnings) result.append(h("details", {}, h("summary", {}, s.warnings.length + (s.warnings.length === 1 ? " warning" : " warnings")), h("ul", {}, s.warnings.map((w) => h("li", {}, w)))));
    if (!s.runs) return;
    const worst = Math.max(...s.runs.map((r) => r.avg_jct_s || 0));
    const length = (v) => v == null ? "–" : h("span", {class: "error"}, h("span", {class: "gauge", "aria-hidden": "true"}, h("span", {class: "c1", style: {width: 100 * v / worst + "%"}})), duration(v));
    const time = (name, about, key) => ({name, about, num: true, cell: (r) => duration(r[key])});
    result.append(plainTable([
      {name: "Policy", cell: (r) => h("span", {class: "policy"}, h("span", {class: "swatch c" + (s.runs.indexOf(r) % 8 + 1)}), h("span", {}, r.policy))}, {name: "Average JCT", num: true, cell: (r) => r.error ? h("span", {class: "doubt"}, r.error) : length(r.avg_jct_s)},
      time("Median", "median time from submission to completion", "median_jct_s"), time("99th percentile", "99 of 100 jobs take at most this long from submission to completion", "p99_jct_s"), time("Makespan", "", "makespan_s"),
      {name: "Device-hours", num: true, cell: (r) => big(r.device_hours)}, {name: "Utilisation", num: true, cell: (r) => percent(r.utilisation)},
      {name: "Restarts", num: true, cell: (r) => big(r.restarts)}, {name: "Worst ρ", num: true, cell: (r) => r.max_rho == null ? "–" : sig(r.max_rho, 3)},
      {name: "Finished", num: true, cell: (r) => big(r.finished) + " of " + big(r.jobs)},
    ], s.runs, "Figures of the policies"),
    h("p", {class: "hint"}, "JCT is the time from a job's submission to its completion; ρ compares it with the time of the job alone on its share of the cluster."),
    h("p", {}, withToken() ? h("button", {type: "button", onclick: () => file(s.report, "simulation-" + s.id + ".html")}, "Save the report")
      : h("a", {href: s.report, target: "_blank", rel: "noopener"}, "Open the report"), ": this as one file, with fairness and lateness in figures."));
    if (s.charts) drawCharts(s.charts, result.appendChild(h("div")), ending.signal).catch((err) => { if (err.name !== "AbortError") result.append(problemBox(err)); });
    if (s.events) {
      result.append(h("h2", {}, "What happened to " + s.events[0].job_id), table([
        {name: "Policy", about: "policy", width: 11, value: (e) => e.policy, cell: (e) => e.policy}, {name: "Time", about: "since the first submission", width: 7, num: true, value: (e) => e.at_s, cell: (e) => duration(e.at_s)},
        {name: "Event", about: "event", width: 7, value: (e) => e.event, cell: (e) => e.event}, {name: "Devices", about: "devices", width: 5, num: true, value: (e) => e.devices ?? null, cell: (e) => e.devices ?? "–"},
        {name: "Plan", about: "execution plan", width: 16, value: (e) => e.plan || "", cell: (e) => h("code", {}, e.plan || "")}, {name: "Reason", about: "reason", width: 40, value: (e) => e.why || "", cell: (e) => h("span", {title: e.why}, e.why || "")},
      ], s.events, {label: "Events of a job"}).element);
    }
  }
}

// drawn are the charts of a report, with their title, what they show, and why they may be empty.
const drawn = {
  jct: ["Job completion time", "Share of the admitted jobs that finished within the time below after their submission; higher and further left is better.", "no job finished"],
  delay: ["Queueing delay", "Share of the admitted jobs that started within the time below after their submission.", "no job had to wait"],
  rho: ["Finish-time fairness", "Share of the jobs with a ρ of at most the number below; 1 is as fast as alone on an equal share of the cluster, less is faster.", "no job finished, or run times alone are not known"],
  used: ["Utilisation", "Share of the cluster's devices that jobs hold", "nothing happened"],
  waiting: ["Waiting jobs", "Admitted jobs that hold no device", "nothing happened"],
};

// drawCharts draws the charts of a simulation into a box until the signal ends them.
async function drawCharts(path, box, signal) {
  const [data, {drawPolicies, drawGantt, meanOver}] = await Promise.all([api(path, undefined, signal), import("./schedules.js"), charts()]);
  signal.throwIfAborted();
  const boxes = {}, sections = Object.entries(drawn).map(([name, [title, about, none]]) => h("section", {"aria-label": title}, h("h2", {}, title),
    h("p", {}, about + (name === "used" || name === "waiting" ? meanOver(data[name]) + "." : "")), boxes[name] = h("figure", {class: "chart", "aria-label": title, "data-none": none})));
  const parts = {canvas: h("canvas", {role: "img", "aria-label": "Jobs on every device over time"}), picks: h("div", {class: "picks", role: "group", "aria-label": "Policy drawn"}), about: h("p"), under: h("p", {class: "hint under"})};
  const devices = h("section", {"aria-label": "Devices"}, h("h2", {}, "Devices"), parts.about, parts.picks, h("div", {class: "gantt"}, parts.canvas), parts.under);
  box.append(h("div", {class: "two"}, sections), h("p", {class: "hint"}, "Drag across a chart to zoom in, double-click to zoom out. A policy's name hides or shows its line."), devices);
  const ends = [keepDrawn(() => drawPolicies(boxes, data)), drawGantt(parts, data)];
  if (!ends[1]) devices.remove();
  signal.addEventListener("abort", () => ends.forEach((end) => end?.()));
}

// amount reads a field that must be a number above 0.
function amount(name, text) {
  if (!(+text > 0)) throw new Error(labels[name][0] + " " + JSON.stringify(text.slice(0, 40)) + " is not a number above 0.");
  return +text;
}
