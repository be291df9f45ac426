package server

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/internal/query/querytest"
)

// Where the directory of models cannot be written, fits fail and count as failed, and the models before go on to answer.
func TestFitThatCannotBeWritten(t *testing.T) {
	db, reg := querytest.Open(t)
	s, err := New(db, reg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{measured(t, s, 1.5)}))
	post[FitResponse](t, s, "/v1/fit", `{}`)
	before := post[query.Plans](t, s, "/v1/predict", requestOfMeasured).Plans[0]
	post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{measured(t, s, 4)}))

	models := filepath.Join(filepath.Dir(db.Dir()), "models")
	if err := os.Chmod(models, 0o500); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(models, 0o700) }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		dropWriteCapability(t)
		for range 3 {
			s.fits.fitTaken(t.Context())
		}
	}()
	<-done
	if n, age := s.fits.Waiting(); n != 1 || age <= 0 {
		t.Errorf("%d models wait for %v after fits that failed", n, age)
	}
	if n := valueOf(s.metrics.fits.WithLabelValues("failed")); n != 3 {
		t.Errorf("%g fits failed, want 3", n)
	}
	if after := post[query.Plans](t, s, "/v1/predict", requestOfMeasured).Plans[0]; before.By == "analytic" || after.By != before.By || after.StepTimeSec != before.StepTimeSec {
		t.Errorf("%g s by %s, before %g s by %s", after.StepTimeSec, after.By, before.StepTimeSec, before.By)
	}
	if w := do(s, http.MethodGet, "/readyz", ""); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// dropWriteCapability makes the permissions of files hold for the calling goroutine, also where it is root. Its thread
// ends with it.
func dropWriteCapability(t *testing.T) {
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		t.Error(err)
	}
	sets[0].Effective &^= 1 << unix.CAP_DAC_OVERRIDE
	if err := unix.Capset(&header, &sets[0]); err != nil {
		t.Error(err)
	}
}
