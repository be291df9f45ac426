package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/batch"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// predictRows runs predict on a table and returns its output.
func predictRows(t *testing.T, table string, args ...string) string {
	t.Helper()
	var out, log bytes.Buffer
	if code := run(t.Context(), append([]string{"pacer", "predict", "--in", "-"}, args...), strings.NewReader(table), &out, &log); code != fail.OK && code != fail.Partial {
		t.Fatalf("exit code %d: %s", code, log.String())
	}
	return out.String()
}

// publishedTable returns a published table, and it with its outcomes blanked.
func publishedTable(t *testing.T, name string) (whole, blanked string, rows []map[string]string) {
	t.Helper()
	file := "data/published/" + name + ".csv"
	records := spectest.Records(t, file)
	var a, b bytes.Buffer
	wa, wb := csv.NewWriter(&a), csv.NewWriter(&b)
	for i, rec := range records {
		blank := slices.Clone(rec)
		for k, col := range records[0] {
			if i > 0 && slices.Contains(datasets.OutcomeColumns, col) {
				blank[k] = ""
			}
		}
		if err := errors.Join(wa.Write(rec), wb.Write(blank)); err != nil {
			t.Fatal(err)
		}
	}
	wa.Flush()
	wb.Flush()
	return a.String(), b.String(), spectest.Table(t, file)
}

// Of the published rows with a measured step time nearly all are predicted,
// from what was run alone: their outcomes blanked, the answer is the same to
// the byte.
func TestPredictPublishedRows(t *testing.T) {
	usable, predicted := 0, 0
	for _, name := range []string{"bigscience", "internevo", "megatron_bridge", "torchtitan", "megatron_sc21", "korthikanti_2205_05198",
		"fms_fsdp", "nemo_2407", "litgpt"} {
		whole, blanked, rows := publishedTable(t, name)
		got := predictRows(t, whole, "--explain")
		if again := predictRows(t, blanked, "--explain"); again != got {
			t.Errorf("%s: outcomes change what is predicted", name)
		}
		answers, err := csv.NewReader(strings.NewReader(got)).ReadAll()
		if err != nil || len(answers) != len(rows)+1 {
			t.Fatalf("%s: %d answers to %d rows, %v", name, len(answers)-1, len(rows), err)
		}
		for i, row := range rows {
			if answers[i+1][0] != row["row_id"] {
				t.Fatalf("%s: answer %d is to %s, want %s", name, i+1, answers[i+1][0], row["row_id"])
			}
			if row["status"] == "ok" && row["step_time_s"] != "" {
				usable++
				if answers[i+1][1] != "" {
					predicted++
				}
			}
		}
	}
	if usable != 668 || predicted < 550 {
		t.Errorf("%d of %d rows predicted, want at least 550 of 668", predicted, usable)
	}
}

// The parts of a step add up to the step, and those of its memory to that.
func TestExplanationAddsUp(t *testing.T) {
	table, err := csv.NewReader(strings.NewReader(predictRows(t, spectest.DistinctRows(64), "--explain"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := func(row []string, col string) float64 {
		v, err := strconv.ParseFloat(row[slices.Index(table[0], col)], 64)
		if err != nil {
			t.Fatalf("%s: %v", row[0], err)
		}
		return v
	}
	for _, row := range table[1:] {
		sec, gib := 0.0, 0.0
		for _, col := range table[0] {
			switch {
			case slices.Contains(batch.Header(false), col), col == "host_gib":
			case strings.HasSuffix(col, "_s"):
				sec += at(row, col)
			case strings.HasSuffix(col, "_gib"):
				gib += at(row, col)
			}
		}
		if want := at(row, "step_time_s"); math.Abs(sec/want-1) > 1e-9 {
			t.Errorf("%s: parts of %g s, step %g s", row[0], sec, want)
		}
		if want := at(row, "mem_gib"); math.Abs(gib/want-1) > 1e-9 {
			t.Errorf("%s: parts of %g GiB, memory %g GiB", row[0], gib, want)
		}
	}
}

// Chunks, and which core predicts which row, change nothing.
func TestPredictManyRows(t *testing.T) {
	const n = 2*4096 + 17
	got := strings.Split(strings.TrimSpace(predictRows(t, spectest.DistinctRows(n))), "\n")
	if len(got) != n+1 {
		t.Fatalf("%d lines, want %d", len(got), n+1)
	}
	some := strings.Split(strings.TrimSpace(predictRows(t, spectest.DistinctRows(100))), "\n")
	for i, line := range some {
		if got[i] != line {
			t.Fatalf("line %d: %s among many, %s among few", i+1, got[i], line)
		}
	}
}
