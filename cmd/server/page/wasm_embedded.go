//go:build wasmpage

package page

import "embed"

//go:embed wasm/pacer.wasm.gz wasm/wasm_exec.js
var wasm embed.FS
