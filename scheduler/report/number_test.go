package report

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                         "0",
		1:                         "0.000000001",
		260 * time.Second:         "260",
		1500 * time.Millisecond:   "1.5",
		-1500 * time.Millisecond:  "-1.5",
		math.MaxInt64:             "9223372036.854775807",
		math.MinInt64:             "-9223372036.854775808",
		85_000*time.Second + 1000: "85000.000001",
	} {
		if got := Seconds(d); got != want {
			t.Errorf("Seconds(%d) = %s, want %s", int64(d), got, want)
		}
	}
}

func TestSecondsIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64().Draw(t, "d"))
		back, err := time.ParseDuration(Seconds(d) + "s")
		if err != nil || back != d {
			t.Fatalf("Seconds(%d) = %s reads as %d, %v", int64(d), Seconds(d), int64(back), err)
		}
	})
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		n          Number
		text, json string
	}{
		{0, "0", "0"},
		{Number(math.Copysign(0, -1)), "0", "0"},
		{-1e-12, "0", "0"},
		{3521.5, "3521.5", "3521.5"},
		{1. / 3, "0.333333333", "0.333333333"},
		{1e21, "1000000000000000000000", "1000000000000000000000"},
		{Undefined(), "", "null"},
		{Number(math.Inf(1)), "", "null"},
	} {
		if got := c.n.String(); got != c.text {
			t.Errorf("String of %v = %q, want %q", float64(c.n), got, c.text)
		}
		b, err := json.Marshal(c.n)
		if err != nil || string(b) != c.json {
			t.Errorf("JSON of %v = %s, %v, want %s", float64(c.n), b, err, c.json)
		}
		var back Number
		if err := json.Unmarshal(b, &back); err != nil || back.String() != c.text {
			t.Errorf("%s reads as %v, %v", b, back, err)
		}
	}
	var n Number
	if err := json.Unmarshal([]byte(`"7"`), &n); err == nil {
		t.Error(`"7" reads as a number`)
	}
}

func TestHuman(t *testing.T) {
	for s, want := range map[Number]string{
		0: "0.0 s", 59.4: "59.4 s", 59.96: "1 m 00 s", 500: "8 m 20 s", 3599.4: "59 m 59 s", 3599.7: "1 h 00 m",
		3720: "1 h 02 m", 86369: "23 h 59 m", 86371: "1 d 00 h", 273600: "3 d 04 h", -61: "-1 m 01 s",
		-0.06: "-0.1 s", -0.04: "0.0 s",
	} {
		if got := Human(s); got != want {
			t.Errorf("Human(%v) = %q, want %q", float64(s), got, want)
		}
	}
	if got := Human(Undefined()); got != "-" {
		t.Errorf("Human of undefined = %q", got)
	}
}
