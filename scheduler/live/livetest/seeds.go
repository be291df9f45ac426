package livetest

import (
	"os"
	"strconv"
	"testing"
)

// Seeds returns the seeds of random faults: that of PACER_LIVE_SEED, or 1 to few, or with PACER_SOAK 1 to many.
func Seeds(tb testing.TB, few, many uint64) (out []uint64) {
	tb.Helper()
	if text := os.Getenv("PACER_LIVE_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			tb.Fatalf("PACER_LIVE_SEED=%q is not a seed", text)
		}
		return []uint64{seed}
	}
	last := few
	if Soak() {
		last = many
	}
	for seed := uint64(1); seed <= last; seed++ {
		out = append(out, seed)
	}
	return out
}

// Soak reports whether tests run in their long form.
func Soak() bool { return os.Getenv("PACER_SOAK") != "" }
