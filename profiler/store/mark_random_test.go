package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// markUntilKilled puts, quarantines, releases and forgets all rows in turn. It prints the state of the rows when it opened
// the store, the state that each change leads to before the change, and "done" when it returned. Sometimes it closes
// the store and opens it again.
func markUntilKilled(dir string) error {
	ctx := context.Background()
	rows := make([]spec.Measurement, 60)
	for i := range rows {
		rows[i] = numbered(i)
	}
	for round := 0; ; round++ {
		db, err := Open(dir, atNoon)
		if err != nil {
			return err
		}
		for range 3 + round%7 {
			if err := changeAll(ctx, db, rows, round%2 == 0); err != nil {
				return err
			}
		}
		if err := db.Close(); err != nil {
			return err
		}
	}
}

// changeAll makes the change that follows the state of the rows in db.
func changeAll(ctx context.Context, db *DB, rows []spec.Measurement, release bool) error {
	rs, err := db.Records(ctx, Filter{})
	if err != nil {
		return err
	}
	to, change := "", func() (int, error) { return db.Release(ctx, rs) }
	switch state := stateOf(rs); {
	case state == "":
		to, change = "used", func() (int, error) { c, err := db.PutAll(ctx, rows...); return c.Added, err }
	case state == "used":
		to, change = "quarantined", func() (int, error) { return db.Quarantine(ctx, rs, repeated("odd", len(rs))) }
	case state == "quarantined" && release:
		to = "used"
	case state == "quarantined":
		to, change = "forgotten", func() (int, error) { return db.Forget(ctx, rs, "worse") }
	case state != "forgotten":
		return fmt.Errorf("rows are %s", state)
	}
	fmt.Printf("to %s\n", to)
	if n, err := change(); err != nil || n != len(rows) {
		return fmt.Errorf("to %s: %d rows changed of %d, %w", to, n, len(rows), err)
	}
	fmt.Println("done")
	return nil
}

// TestMarksKilledAnywhere kills a process that marks rows at random moments, also while it opens, recovers and closes the
// store. The store must open, and all rows must be in the state that the last change led to; if that had not returned, all
// may be in the state before it. It runs 15 rounds, or 200 if PACER_SOAK is set.
func TestMarksKilledAnywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("kills 15 processes")
	}
	rounds := 15
	if os.Getenv("PACER_SOAK") != "" {
		rounds = 200
	}
	rng := rand.New(rand.NewPCG(3, uint64(rounds)))
	dir, before, torn := t.TempDir(), "", 0
	for round := range rounds {
		cmd, out, _ := helper(t, "mark forever", dir)
		time.AfterFunc(time.Duration(rng.IntN(300))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		after := before // of the change that had begun
		for out.Scan() {
			if to, ok := strings.CutPrefix(out.Text(), "to "); ok {
				after = to
			} else {
				before = after
			}
		}
		if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("round %d: the process ended by itself: %v", round, err)
		}
		db, err := Open(dir, Options{ReadOnly: round%2 == 0 && before != ""})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		got := stateOf(records(t, db, Filter{}))
		if err := db.Close(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if got != before && got != after {
			t.Fatalf("round %d: rows are %q, want %q, or %q after the change that had begun", round, got, before, after)
		}
		if before != after {
			torn++
		}
		before = got
	}
	t.Logf("%d of %d kills were during a change", torn, rounds)
}
