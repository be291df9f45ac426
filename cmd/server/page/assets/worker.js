// The worker of a page without a server: it runs pacer.wasm.gz and answers messages.

const bytes = async () => {
  const r = await fetch("pacer.wasm.gz");
  if (!r.ok) throw new Error("pacer.wasm.gz: status " + r.status);
  const b = await r.arrayBuffer();
  const head = new Uint8Array(b, 0, 2);
  if (head[0] !== 0x1f || head[1] !== 0x8b) return b; // the host has declared the encoding, so the browser has unpacked it
  return new Response(new Blob([b]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
};

const ready = new Promise((done, fail) => {
  self.pacerReady = done;
  try {
    importScripts("wasm_exec.js");
    const go = new Go();
    bytes().then((b) => WebAssembly.instantiate(b, go.importObject)).then(({instance}) => go.run(instance)).then(() => fail(new Error("it has ended")), fail);
  } catch (err) {
    fail(err);
  }
});

self.onmessage = async ({data: {id, path, body}}) => {
  try {
    await ready;
    self.postMessage({id, ...self.pacerAnswer(path, body)});
  } catch (err) {
    self.postMessage({id, status: 500, answer: JSON.stringify({detail: "The WebAssembly of this page does not run: " + err.message})});
  }
};
