package admission

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// parseQueues reads TENANT[@COHORT]=DEVICES[+LIMIT][*WEIGHT]/..., nil for "".
func parseQueues(text string) (map[string]*queue, error) {
	if text == "" {
		return nil, nil
	}
	out := map[string]*queue{}
	for _, item := range strings.Split(text, "/") {
		q, err := parseQueue(item)
		if err != nil {
			return nil, fmt.Errorf("queues=%s: %q is not TENANT[@COHORT]=DEVICES[+LIMIT][*WEIGHT]: %w", text, item, err)
		}
		if out[q.tenant] != nil {
			return nil, fmt.Errorf("queues=%s: tenant %q has two queues", text, q.tenant)
		}
		out[q.tenant] = q
	}
	return out, nil
}

func parseQueue(item string) (*queue, error) {
	name, value, ok := strings.Cut(item, "=")
	if !ok {
		return nil, fmt.Errorf("no quota")
	}
	q := &queue{nominal: map[string]int{}, limit: -1, weight: 1}
	q.tenant, q.cohort, _ = strings.Cut(name, "@")
	value, weight, has := strings.Cut(value, "*")
	if has {
		v, err := strconv.ParseFloat(weight, 64)
		if err != nil || !(v >= 0 && v <= 1e9) {
			return nil, fmt.Errorf("weight %q, want 0 to 1e9", weight)
		}
		q.weight = v
	}
	value, limit, has := strings.Cut(value, "+")
	var err error
	if has {
		if q.limit, err = parseDevices("borrowing limit", limit); err != nil {
			return nil, err
		}
	}
	for _, part := range strings.Split(value, "&") {
		kind, n, typed := strings.Cut(part, "~")
		if !typed {
			kind, n = "", part
		}
		if _, twice := q.nominal[kind]; twice {
			return nil, fmt.Errorf("two quotas of %q", kind)
		}
		if q.nominal[kind], err = parseDevices("quota", n); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// parseDevices reads a number of devices.
func parseDevices(what, text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%s %q, want a number of devices", what, text)
	}
	return n, nil
}
