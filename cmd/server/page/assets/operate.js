// What the server knows: fitted performance models with their accuracy, changes of the step times, and measurements by source.

import {h, api, charts, sig, big, percent, duration, table} from "./core.js";
import {drawShares, keepDrawn} from "./charts.js";

export async function show(root, q, page) {
  const [{cards}, {measurements}, {groups}] = await Promise.all(["/v1/cards", "/v1/measurements", "/v1/sources"].map((path) => api(path, undefined, page.signal)));
  root.append(h("h1", {}, "What the predictions rest on"), await campaigns(page), fits(cards), await accuracy(root, cards, page), drifts(cards), sources(groups, measurements));
}

// campaigns follows the campaigns that measure into this store, as long as the view is shown.
async function campaigns(page) {
  const place = h("div", {"aria-live": "polite"});
  const draw = async () => {
    const {campaigns: runs} = await api("/v1/campaigns", undefined, page.signal);
    place.replaceChildren(...(runs.length ? [h("section", {"aria-labelledby": "h-campaigns"}, h("h2", {id: "h-campaigns"}, "Campaigns"), runs.map(run))] : []));
  };
  await draw();
  const timer = setInterval(() => draw().catch(() => {}), 2000); // a server that is restarted answers again
  page.signal.addEventListener("abort", () => clearInterval(timer));
  return place;
}

function run(c) {
  const ended = c.stopped ? "Ended: " + c.stopped + "." : c.left_s > 0 ? "About " + duration(c.left_s) + " to go." : "";
  const apart = [[c.out_of_memory, "out of memory"], [c.failed, "failed"], [c.in_doubt, "in doubt"]].filter(([n]) => n > 0).map(([n, what]) => n + " " + what);
  return h("div", {class: "block"}, h("p", {}, h("strong", {}, c.name + (c.label && c.label !== "1" ? " #" + c.label : "")), " on " + c.machine + ": " + c.done + " of " + c.wanted + " points" + (apart.length ? ", " + apart.join(", ") : "") + ". " + ended),
    h("progress", {max: Math.max(c.wanted, 1), value: c.done, "aria-label": "Points of " + c.name}),
    c.next && h("p", {class: "hint"}, "Now: ", h("code", {}, c.next)), c.last && h("p", {class: "hint"}, "Last: ", h("code", {}, c.last)));
}

const date = (text) => text ? text.slice(0, 10) : "–";
const words = (...of) => (row, ws) => ws.every((w) => of.some((f) => String(f(row) ?? "").toLowerCase().includes(w)));

function fits(cards) {
  const section = h("section", {"aria-labelledby": "h-fits"}, h("h2", {id: "h-fits"}, "Fitted performance models"));
  if (!cards.length) {
    section.append(h("p", {}, "None: questions are answered by the analytic model. “pacer fit”, or POST /v1/fit, fits models to the stored measurements."));
    return section;
  }
  // error draws the error of a card, on a scale on which 50 % is the whole width.
  const error = (v, before) => h("span", {class: "error"}, h("span", {class: "gauge", "aria-hidden": "true"}, h("span", {class: "c1", style: {width: Math.min(200 * v, 100) + "%"}}),
    before != null && h("span", {class: "limit", style: {left: Math.min(200 * before, 100) + "%"}})), percent(v));
  section.append(h("p", {}, "Error over rows held out of the fit; the mark is the error of the analytic model over the same rows. Coverage is the share of these rows inside their 90 % interval."),
    table([
      {name: "Model", about: "model", width: 14, value: (c) => c.model, cell: (c) => c.model},
      {name: "Accelerator", about: "accelerator", width: 12, value: (c) => c.accelerator, cell: (c) => c.accelerator},
      {name: "Family", about: "kind of performance model", width: 6, value: (c) => c.family, cell: (c) => c.family},
      {name: "Mean error", about: "mean absolute relative error", width: 11, num: true, value: (c) => c.n_held_out ? c.mape : null, cell: (c) => c.n_held_out ? error(c.mape, c.mape_unfitted) : "–"},
      {name: "Analytic", about: "mean error without a fit", width: 6, num: true, value: (c) => c.n_held_out ? c.mape_unfitted : null, cell: (c) => c.n_held_out ? percent(c.mape_unfitted) : "–"},
      {name: "95 %", about: "95th percentile of the error", width: 6, num: true, value: (c) => c.n_held_out ? c.p95_ape : null, cell: (c) => c.n_held_out ? percent(c.p95_ape) : "–"},
      {name: "Coverage", about: "share inside the 90 % interval", width: 6.5, num: true, value: (c) => c.n_held_out ? c.coverage : null, cell: (c) => c.n_held_out ? percent(c.coverage) : "–"},
      {name: "Fitted", about: "rows fitted", width: 5.5, num: true, down: true, value: (c) => c.n_fit, cell: (c) => big(c.n_fit)},
      {name: "Held out", about: "rows that the errors are over", width: 6.5, num: true, down: true, value: (c) => c.n_held_out, cell: (c) => big(c.n_held_out || 0)},
      {name: "Unused", about: "rows in doubt or without a step time", width: 6, num: true, down: true, value: (c) => c.n_left_out, cell: (c) => big(c.n_left_out || 0)},
      {name: "Date", about: "date of the fit", width: 7, value: (c) => c.created, cell: (c) => date(c.created)},
    ], cards, {label: "Fitted performance models", hint: "model or accelerator", filter: words((c) => c.model, (c) => c.accelerator, (c) => c.family), sort: {column: 3}}).element);
  const warned = cards.filter((c) => c.warnings?.length);
  if (warned.length) {
    section.append(h("details", {}, h("summary", {}, "Warnings of " + warned.length + (warned.length === 1 ? " fit" : " fits")),
      h("ul", {}, warned.flatMap((c) => c.warnings.map((w) => h("li", {}, c.model + " on " + c.accelerator + ": " + w))))));
  }
  return section;
}

// accuracy draws how the errors of all fits are spread, beside those of the analytic model over the same rows.
async function accuracy(root, cards, page) {
  const both = cards.filter((c) => c.n_held_out && c.mape > 0 && c.mape_unfitted > 0);
  if (both.length < 2) return "";
  await charts();
  const box = h("figure", {class: "chart", "aria-label": "Errors of all fits"});
  root.addEventListener("shown", () => page.signal.addEventListener("abort", keepDrawn(() => [drawShares(box, "share of " + both.length + " pairs of model and accelerator", "mean error of at most", [
    {name: "fitted", color: "--c1", values: both.map((c) => c.mape)}, {name: "analytic", color: "--c2", values: both.map((c) => c.mape_unfitted)}])])), {once: true});
  return h("section", {"aria-labelledby": "h-errors"}, h("h2", {id: "h-errors"}, "Errors over held-out rows"), h("p", {}, "Higher and further left is better."), box);
}

function drifts(cards) {
  const all = cards.flatMap((c) => (c.drifts || []).map((d) => ({...d, model: c.model})));
  return h("section", {"aria-labelledby": "h-drift"}, h("h2", {id: "h-drift"}, "Changes of step times"),
    all.length ? table([
      {name: "Since", about: "date of the change", width: 7, value: (d) => d.since, cell: (d) => date(d.since)},
      {name: "Accelerator", about: "accelerator", width: 12, value: (d) => d.accelerator, cell: (d) => d.accelerator},
      {name: "Stack", about: "training stack", width: 14, value: (d) => d.stack, cell: (d) => d.stack},
      {name: "Part", about: "part of the step", width: 7, value: (d) => d.part, cell: (d) => d.part},
      {name: "Factor", about: "time after over time before", width: 6, num: true, value: (d) => d.factor, cell: (d) => sig(d.factor, 3)},
      {name: "Rows before", about: "measurements before", width: 7, num: true, value: (d) => d.older, cell: (d) => big(d.older)},
      {name: "Since then", about: "measurements since", width: 7, num: true, value: (d) => d.newer, cell: (d) => big(d.newer)},
    ], all, {label: "Changes of step times"}).element : h("p", {}, "None found: measurements of different dates agree."));
}

function sources(groups, tallies) {
  const section = h("section", {"aria-labelledby": "h-sources"}, h("h2", {id: "h-sources"}, "Measurements by source"));
  if (!groups.length) {
    section.append(h("p", {}, "The store is empty. “pacer import” reads published measurements, “pacer calibrate” measures your own devices, and POST /v1/measurements stores those of a job."));
    return section;
  }
  const count = (state) => groups.reduce((n, g) => n + (g.state === state ? g.rows : 0), 0);
  section.append(h("p", {}, ["used", "in doubt", "quarantined", "forgotten"].map((s) => big(count(s)) + " " + s).join(", ") + ". Rows in doubt and quarantined ones are neither fitted nor scored; “pacer store” changes that."),
    table([
      {name: "Source", about: "source", width: 12, value: (g) => g.source, cell: (g) => g.source},
      {name: "State", about: "state", width: 7, value: (g) => g.state, cell: (g) => g.state},
      {name: "Rows", about: "number of rows", width: 5, num: true, down: true, value: (g) => g.rows, cell: (g) => big(g.rows)},
      {name: "Reason", about: "reason", width: 34, value: (g) => g.reason || "", cell: (g) => h("span", {title: g.reason}, g.reason || "")},
      {name: "Changed", about: "date at which it was stored, or last changed", width: 7, value: (g) => g.at || "", cell: (g) => date(g.at)},
      {name: "By", about: "user", width: 7, value: (g) => g.by || "", cell: (g) => g.by || "–"},
    ], groups, {label: "Measurements by source", hint: "source, state or reason", filter: words((g) => g.source, (g) => g.state, (g) => g.reason)}).element,
    h("details", {}, h("summary", {}, "By model and accelerator"), table([
      {name: "Model", about: "model", width: 14, value: (m) => m.model, cell: (m) => m.model},
      {name: "Accelerator", about: "accelerator", width: 14, value: (m) => m.accelerator, cell: (m) => m.accelerator},
      {name: "Source", about: "source", width: 14, value: (m) => m.source, cell: (m) => m.source},
      {name: "Outcome", about: "outcome", width: 8, value: (m) => m.outcome, cell: (m) => m.outcome},
      {name: "Rows", about: "number of rows", width: 5, num: true, down: true, value: (m) => m.rows, cell: (m) => big(m.rows)},
    ], tallies, {label: "Measurements by model and accelerator", hint: "model, accelerator or source", filter: words((m) => m.model, (m) => m.accelerator, (m) => m.source)}).element));
  return section;
}
