package serve

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/profiler/device"
)

// By default the server uses at most half of the memory of the machine.
func TestMemoryLimit(t *testing.T) {
	limit := func(args ...string) (n int64) {
		app := cli.NewApp()
		app.Flags = Command().Flags
		app.Action = func(c *cli.Context) (err error) {
			n, err = memoryLimit(c)
			return err
		}
		if err := app.Run(append([]string{"serve"}, args...)); err != nil {
			t.Fatal(err)
		}
		return n
	}
	t.Setenv("GOMEMLIMIT", "")
	if got, most := limit(), device.UsableMemory(); got < 0 || float64(got) > most/2 || most > 0 && got == 0 {
		t.Errorf("%d of %g bytes by default", got, most)
	}
	if got := limit("--memory-gib", "1.5"); got != 3<<29 {
		t.Errorf("1.5 GiB are %d bytes", got)
	}
	t.Setenv("GOMEMLIMIT", "1GiB")
	if got := limit(); got != 0 {
		t.Errorf("%d bytes against GOMEMLIMIT", got)
	}
	if got := limit("--memory-gib", "2"); got != 2<<30 {
		t.Errorf("%d bytes: a flag wins", got)
	}
}

// The directory of a store that other users can read is closed to them.
func TestTighten(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no such permissions")
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	dir := t.TempDir()
	for _, mode := range []os.FileMode{0o755, 0o777, 0o700, 0o500} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		tighten(dir, logger)
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o077 != 0 || mode == 0o500 && info.Mode().Perm() != mode {
			t.Errorf("mode %o: now %v, %v", mode, info.Mode(), err)
		}
	}
	if log.Len() > 0 {
		t.Errorf("%s", &log)
	}
	if tighten(filepath.Join(dir, "nosuch"), logger); !strings.Contains(log.String(), "want mode 0700") {
		t.Errorf("%s", &log)
	}
}
