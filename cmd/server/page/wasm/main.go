//go:build js && wasm

// Command wasm answers the questions of a page without a server, in the browser. make build embeds it into pacer, and
// pacer page writes it.
package main

import (
	"context"
	"syscall/js"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
)

func main() {
	local, err := answer.NewLocal()
	if err != nil {
		panic(err) // the worker reports it
	}
	// pacerAnswer(path, body) returns {status, answer}; body is "" for GET, answer is JSON.
	js.Global().Set("pacerAnswer", js.FuncOf(func(_ js.Value, args []js.Value) any {
		status, out := local.Answer(context.Background(), args[0].String(), []byte(args[1].String()))
		return map[string]any{"status": status, "answer": string(out)}
	}))
	js.Global().Call("pacerReady")
	select {}
}
