package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
	"github.com/pacer-ml/pacer/profiler/store"
)

// servedFile, beside the store, holds process and address of its server: "PID URL". The file
// of a killed server has another PID than the process that holds the store.
const servedFile = "served"

// Announce records that this process serves the store of directory dir at url. The caller
// calls withdraw at the end.
func Announce(dir, url string) (withdraw func() error, err error) {
	path := filepath.Join(dir, servedFile)
	if err := atomicfile.WriteBytes(path, 0o600, fmt.Appendf(nil, "%d %s\n", os.Getpid(), url)); err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	return func() error { return os.Remove(path) }, nil
}

// servedAt returns the address at which process pid serves the store of dir, "" if it does
// not.
func servedAt(dir string, pid int) string {
	b, err := os.ReadFile(filepath.Join(dir, servedFile))
	if err != nil {
		return ""
	}
	var owner int
	var url string
	if _, err := fmt.Sscan(string(b), &owner, &url); err != nil || owner != pid {
		return ""
	}
	return url
}

// Server returns the address of the server that has the store open, if err says that it is
// open and a server has it.
func (d *Dir) Server(err error) (url string, served bool) {
	var locked *store.LockedError
	dir, none := d.Path()
	if none != nil || !errors.As(err, &locked) {
		return "", false
	}
	url = servedAt(dir, locked.PID)
	return url, url != ""
}

// servedPaths are the verbs that a server answers too.
var servedPaths = map[string]string{
	"plan": "POST /v1/plan", "predict": "POST /v1/predict", "curve": "POST /v1/curve", "fit-check": "POST /v1/fit-check", "fit": "POST /v1/fit",
	"models": "GET /v1/models", "accelerators": "GET /v1/accelerators", "cards": "GET /v1/cards", "measurements": "GET /v1/measurements",
}

// addServer adds the address of the server to the error of a store that a server has open.
func (d *Dir) addServer(dir string, err error) error {
	var locked *store.LockedError
	if !errors.As(err, &locked) {
		return err
	}
	url := servedAt(dir, locked.PID)
	if url == "" {
		return err
	}
	curl := "curl -s " + url
	if path, socket := strings.CutPrefix(url, "unix:"); socket {
		curl = "curl -s --unix-socket " + path + " http://localhost"
	}
	how := "the API is in docs/guides/serve.md, and " + curl + "/openapi.json"
	if request := servedPaths[d.Verb]; strings.HasPrefix(request, "GET ") {
		how = curl + strings.TrimPrefix(request, "GET ")
	} else if request != "" {
		how = request + ", see docs/guides/serve.md"
	}
	return fmt.Errorf("%w; pacer serve answers from it at %s: %s; or use another --data", err, url, how)
}
