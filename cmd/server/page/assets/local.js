// Answers of a page without a server: WebAssembly in a worker, so that the page goes on while it computes.

let worker, next = 0;
const open = new Map();

function start() {
  const url = new URL("worker.js", import.meta.url).href;
  const policy = globalThis.trustedTypes?.createPolicy("pacer", {createScriptURL: (u) => u === url ? u : ""});
  worker = new Worker(policy ? policy.createScriptURL(url) : url);
  worker.onmessage = ({data: {id, status, answer}}) => {
    open.get(id)?.({status, out: JSON.parse(answer)});
    open.delete(id);
  };
  worker.onerror = (e) => {
    for (const done of open.values()) done({status: 500, out: {detail: "The WebAssembly of this page does not run: " + (e.message || "worker.js or pacer.wasm.gz cannot be loaded") + "."}});
    open.clear();
    worker = null;
  };
}

// ask returns the status and the answer of the query API to a body at a path; without a body it is a GET.
export function ask(path, body, signal) {
  if (!worker) start();
  return new Promise((done, fail) => {
    const id = next++;
    open.set(id, done);
    signal?.addEventListener("abort", () => { open.delete(id); fail(signal.reason); }, {once: true});
    worker.postMessage({id, path, body: body ? JSON.stringify(body) : ""});
  });
}
