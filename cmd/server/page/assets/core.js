// What all views share: elements, the API, the question and its place in the URL, figures, bars and tables.

import {sig, planCode} from "./charts.js";
export {sig, planCode};

// h returns an element. Text is never read as markup. A property whose name begins with "on" is a listener; style is an object.
export function h(tag, props, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value == null || value === false) continue;
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [k, v] of Object.entries(value)) e.style.setProperty(k, v);
    else e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.flat(2).filter((c) => c != null && c !== false));
  return e;
}

// once calls make when its result is first needed. A failure is not kept.
export function once(make) {
  let kept;
  return () => kept ??= make().catch((err) => { kept = null; throw err; });
}

// ---- The API ----

const library = /^(planner|memory|spec|catalog|query|launch|huggingface|family|registry|stack): /; // in which an error arose

export class ApiError extends Error {
  constructor(problem, status) {
    super((problem.detail || problem.title || "status " + status).replace(library, ""));
    this.problem = problem;
  }
}

let token = sessionStorage.getItem("pacer-token") || "";
let asking = null; // the dialog that asks for the token

// Few questions are under way at a time, so that one page does not take all the places of the server.
const mostAtATime = 3;
let running = 0;
const waiting = [];

// api returns the answer of the server: to a POST where there is a body, else to a GET, unless method says otherwise. Errors are
// ApiError.
export async function api(path, body, signal, method) {
  if (running >= mostAtATime) await new Promise((go) => waiting.push(go));
  running++;
  try {
    signal?.throwIfAborted();
    return await request(path, body, signal, method);
  } finally {
    running--;
    waiting.shift()?.();
  }
}

// local says that the page has no server: its files were written by pacer page, and WebAssembly answers.
export const local = document.querySelector("meta[name=pacer-local]") !== null;

async function request(path, body, signal, method) {
  if (local) {
    const {status, out} = await (await import("./local.js")).ask(path, body, signal);
    if (status >= 400) throw new ApiError(out, status);
    return out;
  }
  for (let tries = 0; ; tries++) {
    const sent = token, headers = sent ? {Authorization: "Bearer " + sent} : {};
    if (body) headers["Content-Type"] = "application/json";
    let r;
    try {
      r = await fetch(path, {method: method || (body ? "POST" : "GET"), headers, body: body && JSON.stringify(body), signal});
    } catch (err) {
      if (err.name === "AbortError") throw err;
      throw new ApiError({detail: "The server does not answer. Is pacer serve still running?"});
    }
    if (r.status === 401) {
      if (sent === token) await (asking ??= askToken(sent !== "").finally(() => { asking = null; }));
      continue;
    }
    if ((r.status === 503 || r.status === 429) && tries < 3 && r.headers.get("Retry-After")) {
      await new Promise((done) => setTimeout(done, 1000 * Math.min(+r.headers.get("Retry-After") || 1, 5)));
      signal?.throwIfAborted();
      continue;
    }
    const out = await r.json().catch(() => ({}));
    if (!r.ok) throw new ApiError(out, r.status);
    return out;
  }
}

// withToken says whether requests need a token, which a link cannot have.
export const withToken = () => token !== "";

// file saves an answer of the server as a file.
export async function file(path, name) {
  const r = await fetch(path, {headers: {Authorization: "Bearer " + token}});
  const link = h("a", {href: URL.createObjectURL(await r.blob()), download: name});
  link.click();
  URL.revokeObjectURL(link.href);
}

// askToken asks for the token, which stays in this tab until it is closed.
function askToken(wrong) {
  return new Promise((done) => {
    const input = h("input", {type: "password", id: "token", autocomplete: "off", required: true, "aria-describedby": "token-why"});
    const box = h("dialog", {"aria-labelledby": "token-title"}, h("form", {method: "dialog"},
      h("h2", {id: "token-title"}, "Token"),
      h("p", {id: "token-why"}, wrong ? "The server refuses this token. " : "This server answers only with its token. ", "It is kept in this tab alone."),
      h("label", {for: "token"}, "Bearer token"), input, h("button", {class: "go"}, "Continue")));
    box.addEventListener("cancel", (e) => e.preventDefault());
    box.addEventListener("close", () => {
      token = input.value.trim();
      sessionStorage.setItem("pacer-token", token);
      box.remove();
      done();
    });
    document.body.append(box);
    box.showModal();
  });
}

// charts loads what draws charts.
export const charts = once(async () => { globalThis.uPlot = (await import("./uplot.js")).default; });

export const models = once(async () => (await api("/v1/models")).models);
export const accelerators = once(async () => (await api("/v1/accelerators")).accelerators);
export const frameworks = once(async () => (await api("/v1/frameworks")).frameworks);

// fold reduces a name to what the server compares, so that llama3-8b finds Llama3-8B.
export const fold = (name) => name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
export const named = (list, name) => list.find((e) => [e.name, ...e.aliases].some((n) => fold(n) === fold(name)));

// ---- The question ----

const text = (most) => (v) => v.length > most ? "is longer than " + most + " characters" : v;
const count = (most) => (v) => /^\d{1,9}$/.test(v) && +v >= 1 && +v <= most ? +v : "is not a whole number in 1.." + most;
const amount = (most) => (v) => /^[\d.eE+]{1,20}$/.test(v) && +v > 0 && +v <= most ? +v : "is not a number above 0 and up to " + most;
const object = (v) => {
  try {
    const o = JSON.parse(v);
    if (o && typeof o === "object" && !Array.isArray(o) && typeof o.name === "string") return o;
  } catch { /* said below */ }
  return "is not a network as JSON: the form reads one from a config.json";
};

// fields are the parts of a question, by their names in the URL. Each function returns the value, or the text of what is wrong.
export const fields = {
  view: text(16), model: text(256), network: object, accelerator: text(256), devices: count(1 << 20), batch: count(1 << 24), seq: count(1 << 24),
  framework: text(256), adapter: text(64), precision: text(32), gbps: amount(1e9), plan: text(1024), tokens: amount(1e18), prices: text(2048),
  with: text(1024), batches: text(256),
};
export const example = {model: "llama3-8b", accelerator: "h100", devices: 16, batch: 128};
const texts = new Set(["view", "model", "accelerator", "framework", "adapter", "precision", "plan", "prices", "with", "batches"]);

// parse reads one field. A value that is wrong is an error.
export function parse(name, value) {
  const v = fields[name](value.trim());
  if (typeof v === "string" && !texts.has(name) || typeof v === "string" && v.startsWith("is longer than ")) {
    throw new Error(name + " " + JSON.stringify(value.length > 80 ? value.slice(0, 80) + "…" : value) + " " + v);
  }
  return v;
}

// readURL returns the question of a URL, and what is wrong with it.
export function readURL(search) {
  const q = {}, wrong = [];
  for (const [name, value] of new URLSearchParams(search)) {
    if (!Object.hasOwn(fields, name)) wrong.push("The address has " + JSON.stringify(name.slice(0, 80)) + ", which is no part of a question.");
    else if (value !== "") {
      try { q[name] = parse(name, value); } catch (err) { wrong.push("The address has a wrong value: " + err.message + "."); }
    }
  }
  return {q, wrong};
}

export const maxURL = 8192; // what servers and mail programs pass on

// urlOf returns the URL of a question, "" if it is too long.
export function urlOf(q) {
  const p = new URLSearchParams();
  for (const name of Object.keys(fields)) {
    const v = q[name];
    if (v != null && v !== "") p.set(name, typeof v === "object" ? JSON.stringify(v) : v);
  }
  const s = p.toString(), url = location.pathname + (s && "?" + s);
  return location.origin.length + url.length > maxURL ? "" : url;
}

// body returns the part of a request to the API that a question decides.
export function body(q, more) {
  const {model, network, accelerator, batch, seq, framework, adapter, precision, gbps} = q;
  return {model: network?.name || model, network, accelerator, global_batch: batch, seq, framework, adapter, precision, inter_node_gbps: gbps, ...more};
}

// tokensOf returns the tokens of a sample, 0 where they are not known.
export async function tokensOf(q) {
  return q.seq || q.network?.seq_len || (q.model && named(await models(), q.model)?.seq_len) || 0;
}

// ---- Figures ----

// duration writes seconds in the unit that suits them.
export function duration(s) {
  if (!(s >= 0)) return "–";
  if (s === 0) return "0 s";
  if (s < 1) return sig(s * 1e3, 3) + " ms";
  if (s < 120) return sig(s, 3) + " s";
  if (s < 7200) return sig(s / 60, 3) + " min";
  if (s < 172800) return sig(s / 3600, 3) + " h";
  return big(s / 86400) + " days";
}
// big writes a number with commas between thousands; one that is no integer has three significant digits below 1000.
export const big = (v) => v == null || !isFinite(v) ? "–" : Math.abs(v) >= 1000 || Number.isInteger(v) ? Math.round(v).toLocaleString("en-US") : sig(v, 3);
export const percent = (share) => share == null || !isFinite(share) ? "–" : sig(100 * share, share < 0.0995 ? 2 : 3) + " %";
// brief writes a large number with K, M, B or T.
export function brief(v) {
  for (const [size, unit] of [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "K"]]) if (v >= size) return +(v / size).toPrecision(3) + unit;
  return String(+v.toPrecision(3));
}

export const problemBox = (err) => h("div", {class: "problem", role: "alert"}, h("p", {}, err.message));

// ---- Bars ----

// bar draws parts of a whole of the given size, and marks at sizes of their own. The table that follows it has the same figures.
export function bar(parts, whole, marks, label) {
  return h("div", {class: "whole"},
    h("div", {class: "bar", role: "img", "aria-label": label}, parts.map((p) => h("span", {class: p.color, style: {width: 100 * p.size / whole + "%"}, title: p.name + ": " + p.text}))),
    marks.map((m) => h("span", {class: "limit", style: {left: Math.min(100 * m.size / whole, 100) + "%"}, title: m.name, "aria-hidden": "true"})));
}

// tiles shows single figures.
export const tiles = (list) => h("dl", {class: "tiles"}, list.filter(Boolean).map(([name, value, unit, more]) => h("div", {}, h("dt", {}, name),
  h("dd", {}, h("span", {class: "value"}, value), unit && h("span", {class: "unit"}, " " + unit), more && h("span", {class: "more"}, more)))));

// ---- Tables ----

const rowHeight = 37, slack = 12; // pixels, as in page.css; rows above and below the view

// table shows any number of rows and keeps only those in view in the document. columns have name, cell(row) with text or an
// element and, if they sort, value(row); width is in em. more may have filter(row, words), sort = {column, down}, key(row),
// selected(row), onsort, onfilter and label.
export function table(columns, rows, more) {
  let shown = rows, at = {...more.sort}, first = -1;
  const heads = columns.map((c, i) => h("th", {scope: "col", class: c.num && "num", "aria-sort": at.column === i ? at.down ? "descending" : "ascending" : null},
    c.value ? h("button", {type: "button", title: c.about, onclick: () => sortBy(i)}, c.name) : c.name || h("span", {class: "hidden"}, c.about)));
  const tbody = h("tbody"), status = h("p", {class: "hint", role: "status"});
  const grid = h("table", {class: "grid", style: {width: "max(100%, " + columns.reduce((n, c) => n + c.width, 0) + "em)"}}, h("caption", {class: "hidden"}, more.label),
    h("colgroup", {}, columns.map((c) => h("col", {style: {width: c.width + "em"}}))), h("thead", {}, h("tr", {"aria-rowindex": 1}, heads)), tbody);
  const scroll = h("div", {class: "scroll rows", tabindex: 0, role: "region", "aria-label": "Rows: " + more.label, onscroll: () => requestAnimationFrame(draw), onkeydown: step}, grid);
  const input = more.filter && h("input", {type: "search", placeholder: more.hint, "aria-label": "Filter: " + more.hint, oninput: apply, maxlength: 200});

  function sortBy(i) {
    at = {column: i, down: at.column === i ? !at.down : Boolean(columns[i].down)};
    heads.forEach((e, k) => k === i ? e.setAttribute("aria-sort", at.down ? "descending" : "ascending") : e.removeAttribute("aria-sort"));
    apply();
  }
  // apply filters and sorts. Rows without a value come last.
  function apply() {
    const words = (input?.value || "").toLowerCase().split(/\s+/).filter(Boolean);
    shown = words.length ? rows.filter((r) => more.filter(r, words)) : rows;
    if (at.column != null) {
      const value = columns[at.column].value, sign = at.down ? -1 : 1;
      shown = shown.map((row, i) => ({row, i, v: value(row)})).sort((a, b) => {
        if (a.v == null || b.v == null) return (a.v == null) - (b.v == null) || a.i - b.i;
        return sign * (typeof a.v === "string" ? a.v.localeCompare(b.v) : a.v - b.v) || a.i - b.i;
      }).map((e) => e.row);
    }
    grid.setAttribute("aria-rowcount", shown.length + 1);
    status.textContent = shown.length === rows.length ? rows.length.toLocaleString("en-US") + (rows.length === 1 ? " row" : " rows")
      : shown.length.toLocaleString("en-US") + " of " + rows.length.toLocaleString("en-US") + " rows";
    first = -1;
    scroll.scrollTop = 0;
    draw();
  }
  const space = (n) => h("tr", {class: "space", "aria-hidden": "true", style: {height: n * rowHeight + "px"}}, h("td", {colspan: columns.length}));
  function draw(force) {
    // The first row moves in steps of slack, so that most scrolling changes nothing.
    const from = Math.max((Math.floor(scroll.scrollTop / rowHeight / slack) - 1) * slack, 0), n = Math.ceil((scroll.clientHeight || 560) / rowHeight) + 3 * slack;
    if (from === first && force !== true) return;
    first = from;
    const part = shown.slice(from, from + n), holder = tbody.contains(document.activeElement) && document.activeElement.closest("tr");
    const held = holder && holder.dataset.row, which = holder && [...holder.querySelectorAll("button")].indexOf(document.activeElement);
    tbody.replaceChildren(space(from), ...part.map((row, i) => h("tr", {"aria-rowindex": from + i + 2, "data-row": from + i, class: more.selected?.(row) && "selected"},
      columns.map((c, k) => h(k === 0 ? "th" : "td", {scope: k === 0 && "row", class: c.num && "num"}, c.cell(row))))), space(Math.max(shown.length - from - part.length, 0)));
    if (held && document.activeElement === document.body) tbody.querySelectorAll('[data-row="' + held + '"] button')[which]?.focus({preventScroll: true});
  }
  // step moves between rows by the arrow keys.
  function step(e) {
    const row = e.target.closest("tbody tr");
    if (!row || e.key !== "ArrowDown" && e.key !== "ArrowUp") return;
    const to = Math.min(Math.max(+row.dataset.row + (e.key === "ArrowDown" ? 1 : -1), 0), shown.length - 1), which = [...row.querySelectorAll("button")].indexOf(e.target);
    e.preventDefault();
    const top = to * rowHeight, view = scroll.clientHeight - 2 * rowHeight;
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    else if (top > scroll.scrollTop + view) scroll.scrollTop = top - view;
    draw();
    tbody.querySelector('[data-row="' + to + '"]')?.querySelectorAll("button")[which]?.focus({preventScroll: true});
  }
  apply();
  const out = h("div", {class: "tabled"}, h("div", {class: "tools"}, input, more.tools), scroll, status);
  new ResizeObserver(() => draw(true)).observe(scroll);
  return {element: out, redraw: () => draw(true)};
}

// plainTable shows a few rows, on a phone each as a block. Columns are as those of table.
export function plainTable(columns, rows, label) {
  return h("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Rows: " + label}, h("table", {class: "blocks"}, h("caption", {class: "hidden"}, label),
    h("thead", {}, h("tr", {}, columns.map((c) => h("th", {scope: "col", class: c.num && "num"}, c.name || h("span", {class: "hidden"}, c.about))))),
    h("tbody", {}, rows.map((row) => h("tr", {}, columns.map((c, k) => h(k === 0 ? "th" : "td", {scope: k === 0 && "row", class: c.num && "num", "data-name": c.name}, c.cell(row))))))));
}
