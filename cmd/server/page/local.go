package page

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// localOnly are the scripts of a page without a server.
var localOnly = []string{"local.js", "worker.js"}

// localHead makes index.html that of a page without a server. Its policy allows WebAssembly, and a worker that runs it.
const localHead = `<meta name="pacer-local" content="">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types pacer">
`

// ErrNoWasm says that the program was built without the WebAssembly that answers the questions of a page.
var ErrNoWasm = errors.New("this pacer was built without the WebAssembly of the page: make build, in a clone of the source, builds one with it")

// Write writes the page to the directory dir, with WebAssembly that answers its questions in the browser, so that any
// host of static files can serve it, from any path. dir is made; one that exists must be empty, or have such a page:
// its files are replaced. The error wraps ErrNoWasm in a program without WebAssembly.
func Write(dir string) error {
	files, err := localFiles(wasm)
	if err != nil {
		return err
	}
	if err := mayWrite(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "page"), 0o755); err != nil {
		return err
	}
	for name, body := range files {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), body, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// localFiles returns the files of a page without a server by path.
func localFiles(wasm embed.FS) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, name := range []string{"pacer.wasm.gz", "wasm_exec.js"} {
		b, err := wasm.ReadFile("wasm/" + name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, ErrNoWasm
		} else if err != nil {
			return nil, err
		}
		out["page/"+name] = b
	}
	for _, f := range Files() {
		out[strings.TrimPrefix(f.Path, "/")] = f.body
	}
	for _, name := range localOnly {
		out["page/"+name] = read(name)
	}
	out["index.html"] = bytes.Replace(out[""], []byte("<title>"), []byte(localHead+"<title>"), 1)
	delete(out, "")
	return out, nil
}

// mayWrite returns an error if dir has files that are not those of a page.
func mayWrite(dir string) error {
	there, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(there) == 0 {
		return nil
	} else if err != nil {
		return err
	}
	if b, err := os.ReadFile(filepath.Join(dir, "index.html")); err == nil && bytes.Contains(b, []byte(localHead[:len(`<meta name="pacer-local"`)])) {
		return nil
	}
	return fmt.Errorf("%s has files that are not those of a page: name an empty or a new directory", dir)
}
