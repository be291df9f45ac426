package access

import (
	"strings"
	"testing"
	"time"
)

func TestNewTokenRefuses(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name    string
		scopes  []string
		expires time.Time
		says    string
	}{
		{"", []string{ScopeRead}, time.Time{}, `name ""`}, {"a b", []string{ScopeRead}, time.Time{}, `name "a b"`},
		{"a", nil, time.Time{}, "no scope"}, {"a", []string{"write"}, time.Time{}, `scope "write"`}, {"a", []string{ScopeRead}, now, "past"},
	} {
		if _, _, err := NewToken(c.name, c.scopes, now, c.expires); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, secret, err := NewToken("a", []string{ScopeRead}, now, time.Time{}); err != nil || len(secret) < MinToken {
		t.Errorf("%q, %v", secret, err)
	}
}
