//go:build !wasmpage

package page

import "embed"

var wasm embed.FS // make build makes and embeds it
