package remote

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// waitOf returns the wait of a 503 or 429 with a Retry-After in seconds or as a date,
// at most most. again is false for other responses.
func waitOf(res *http.Response, now time.Time, most time.Duration) (wait time.Duration, again bool) {
	if res.StatusCode != http.StatusServiceUnavailable && res.StatusCode != http.StatusTooManyRequests {
		return 0, false
	}
	v := res.Header.Get("Retry-After")
	if n, err := strconv.ParseUint(v, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, most), true
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(at.Sub(now), 0), most), true
	}
	return 0, false
}

// sleep waits for d. It returns the error of ctx where that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
