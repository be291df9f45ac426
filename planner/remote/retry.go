package remote

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// waitOf returns how long the server asks to wait before it is asked again, and
// whether it asks at all: with a Retry-After of seconds or a date, on a 503 or
// a 429. At most is the most it may ask.
func waitOf(res *http.Response, now time.Time, most time.Duration) (time.Duration, bool) {
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

// sleep waits for d or the end of ctx, whose error it returns.
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
