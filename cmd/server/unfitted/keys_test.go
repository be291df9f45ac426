package unfitted

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestWaitingSinceTheFirst: a key waits since the first measurement that no model is fitted to, however many follow; after a
// fit it waits since the first one that came meanwhile.
func TestWaitingSinceTheFirst(t *testing.T) {
	file := filepath.Join(t.TempDir(), "unfitted.json")
	synctest.Test(t, func(t *testing.T) {
		u, key := New(file), []spec.Key{{Model: "gpt2", Accelerator: "V100"}}
		mark := func() {
			t.Helper()
			if err := u.Mark(key); err != nil {
				t.Fatal(err)
			}
		}
		mark()
		time.Sleep(time.Minute)
		mark()
		time.Sleep(time.Minute)
		if n, oldest := u.Waiting(); n != 1 || oldest != 2*time.Minute {
			t.Errorf("%d keys, the oldest for %v, want one for 2m", n, oldest)
		}
		u.Take()
		mark()
		time.Sleep(time.Second)
		if err := u.Done(true); err != nil {
			t.Fatal(err)
		}
		if n, oldest := u.Waiting(); n != 1 || oldest != time.Second {
			t.Errorf("after a fit %d keys, the oldest for %v, want one for 1s", n, oldest)
		}
	})
}
