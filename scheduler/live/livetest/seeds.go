package livetest

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// Seeds returns the seeds of random faults: those of PACER_LIVE_SEED, such as 7 or 11-20, or 1 to few, or with PACER_SOAK 1 to
// many.
func Seeds(tb testing.TB, few, many uint64) (out []uint64) {
	tb.Helper()
	first, last := uint64(1), few
	if Soak() {
		last = many
	}
	if text := os.Getenv("PACER_LIVE_SEED"); text != "" {
		from, to, several := strings.Cut(text, "-")
		if !several {
			to = from
		}
		var errs [2]error
		first, errs[0] = strconv.ParseUint(from, 10, 64)
		last, errs[1] = strconv.ParseUint(to, 10, 64)
		if errs != [2]error{} || last < first {
			tb.Fatalf("PACER_LIVE_SEED=%q is no seed and no range of seeds", text)
		}
	}
	for seed := first; seed <= last; seed++ {
		out = append(out, seed)
	}
	return out
}

// Soak reports whether tests run in their long form.
func Soak() bool { return os.Getenv("PACER_SOAK") != "" }
