package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// failure is what an attempt without an answer means for the next one. The zero value is an error that stays.
type failure struct {
	asked bool          // the server wants the request again,
	after time.Duration // so much later
	lost  bool          // no answer, or one of an overloaded server: it may have carried the request out
}

// Waits between repetitions that the server does not choose.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// send sends a request until it is answered.
func (c *Client) send(ctx context.Context, r *request) (err error) {
	if r.in != nil {
		if r.body, err = json.Marshal(r.in); err != nil {
			return fmt.Errorf("remote: %w", err) // a number that is not finite
		}
	}
	return c.retry(ctx, r.repeat, func() (failure, error) { return c.once(ctx, r) })
}

// retry calls once until it has no error, as often as Retries and Patience allow. repeat says that a repetition changes
// nothing.
func (c *Client) retry(ctx context.Context, repeat bool, once func() (failure, error)) error {
	end, pause := time.Now().Add(c.o.Patience), firstPause
	for try := 0; ; try++ {
		f, err := once()
		patient := repeat && (f.asked || f.lost) && time.Now().Before(end)
		if err == nil || !patient && (!f.asked || try >= c.o.Retries) {
			return err
		}
		wait := f.after
		if !f.asked {
			wait, pause = pause, min(2*pause, lastPause)
		}
		if stopped := sleep(ctx, wait); stopped != nil {
			return fmt.Errorf("remote: %w (after %d tries: %w)", stopped, try+1, err)
		}
	}
}

// failureOf reads a response that is an error. Retry-After is in seconds or a date; the wait is at most most. Status 409
// means that an earlier request with the same idempotency key is being answered.
func failureOf(res *http.Response, now time.Time, most time.Duration) failure {
	switch res.StatusCode {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
	case http.StatusConflict:
		return failure{lost: true}
	default:
		return failure{}
	}
	v := res.Header.Get("Retry-After")
	if n, err := strconv.ParseUint(v, 10, 31); err == nil {
		return failure{asked: true, after: min(time.Duration(n)*time.Second, most)}
	}
	if at, err := http.ParseTime(v); err == nil {
		return failure{asked: true, after: min(max(at.Sub(now), 0), most)}
	}
	return failure{lost: true}
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
