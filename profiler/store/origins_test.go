package store

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestOriginsStored: a row is known by the end of its path, and each stored row stands for one.
func TestOriginsStored(t *testing.T) {
	at := func(i int, origin string) spec.Measurement {
		m := rowfiletest.Invented(i)
		m.Source, m.Origin = "set", origin
		return m
	}
	for _, tc := range []struct {
		name   string
		stored []spec.Measurement
		given  []spec.Measurement
		want   []string
	}{
		{"same", []spec.Measurement{at(1, "a/t.csv:2")}, []spec.Measurement{at(1, "a/t.csv:2")}, []string{"a/t.csv:2"}},
		{"from a folder below", []spec.Measurement{at(1, "a/b/t.csv:2")}, []spec.Measurement{at(1, "t.csv:2")}, []string{"a/b/t.csv:2"}},
		{"from a folder above", []spec.Measurement{at(1, "t.csv:2")}, []spec.Measurement{at(1, "a/b/t.csv:2")}, []string{"t.csv:2"}},
		{"other line", []spec.Measurement{at(1, "a/t.csv:2")}, []spec.Measurement{at(1, "t.csv:3")}, []string{"t.csv:3"}},
		{"other file", []spec.Measurement{at(1, "a/tt.csv:2")}, []spec.Measurement{at(1, "t.csv:2")}, []string{"t.csv:2"}},
		{"other folder", []spec.Measurement{at(1, "a/t.csv:2")}, []spec.Measurement{at(1, "b/t.csv:2")}, []string{"b/t.csv:2"}},
		{"other figures", []spec.Measurement{at(1, "a/t.csv:2")}, []spec.Measurement{at(2, "t.csv:2")}, []string{"t.csv:2"}},
		{"longest", []spec.Measurement{at(1, "t.csv:2"), at(1, "b/t.csv:2")}, []spec.Measurement{at(1, "a/b/t.csv:2")}, []string{"b/t.csv:2"}},
		{"exact before longest", []spec.Measurement{at(1, "t.csv:2"), at(1, "b/t.csv:2")}, []spec.Measurement{at(1, "t.csv:2"), at(1, "b/t.csv:2")}, []string{"t.csv:2", "b/t.csv:2"}},
		{"two of one", []spec.Measurement{at(1, "t.csv:2")}, []spec.Measurement{at(1, "a/t.csv:2"), at(1, "b/t.csv:2")}, []string{"t.csv:2", "b/t.csv:2"}},
		{"none stored", nil, []spec.Measurement{at(1, "t.csv:2"), at(1, "b/t.csv:2")}, []string{"t.csv:2", "b/t.csv:2"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			db := openTest(t, t.TempDir(), Options{})
			mustPut(t, db, tc.stored...)
			origins := NewOrigins(db)
			for i, m := range tc.given {
				got, _, err := origins.Stored(t.Context(), m)
				if err != nil || got != tc.want[i] {
					t.Errorf("%s: %q, %v, want %q", m.Origin, got, err, tc.want[i])
				}
				m.Origin = got
				mustPut(t, db, m)
			}
		})
	}
}
