package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"time"
)

// JobRow is a job in a file of WriteJobs.
type JobRow struct {
	Policy   string
	ID       string
	Submit   time.Duration
	JCT      time.Duration
	Finished bool // else JCT is 0
}

// jobsColumns are the columns read; others are ignored.
var jobsColumns = []string{"policy", "job_id", "submit_s", "jct_s"}

// ReadJobsFile reads the jobs of a file of WriteJobs, CSV or Parquet by its name; none is an error.
func ReadJobsFile(path string) ([]JobRow, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := readJobs(f, path)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("report: %s holds no job", path)
	}
	return rows, err
}

func readJobs(f *os.File, path string) ([]JobRow, error) {
	if FormatOf(path) != Parquet {
		return ReadJobsCSV(f, path)
	}
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return ReadJobsParquet(f, st.Size(), path)
}

// ReadJobsCSV reads the jobs of a CSV file of WriteJobs. Columns may be in any order;
// unknown ones are ignored. Without a column policy, it is empty. Errors have name
// and line. A job that occurs twice under a policy is an error.
func ReadJobsCSV(r io.Reader, name string) ([]JobRow, error) {
	c := csv.NewReader(r)
	c.ReuseRecord = true
	header, err := c.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("report: %s: the file is empty", name)
	}
	if err != nil {
		return nil, fmt.Errorf("report: %s: %w", name, err)
	}
	column := map[string]int{}
	for _, want := range jobsColumns {
		at := slices.Index(header, want)
		if at < 0 && want != "policy" {
			return nil, fmt.Errorf("report: %s: no column %s, want a file of pacer simulate --jobs-out", name, want)
		}
		column[want] = at
	}
	var out []JobRow
	seen := map[[2]string]int{}
	for {
		cells, err := c.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("report: %s: %w", name, err)
		}
		line, _ := c.FieldPos(0)
		j, err := parseJobRow(cells, column)
		if err != nil {
			return nil, fmt.Errorf("report: %s:%d: %w", name, line, err)
		}
		if first, twice := seen[[2]string{j.Policy, j.ID}]; twice {
			return nil, fmt.Errorf("report: %s:%d: job %s is also on line %d", name, line, j.ID, first)
		}
		seen[[2]string{j.Policy, j.ID}] = line
		out = append(out, j)
	}
}

func parseJobRow(cells []string, column map[string]int) (j JobRow, err error) {
	if at := column["policy"]; at >= 0 {
		j.Policy = cells[at]
	}
	if j.ID = cells[column["job_id"]]; j.ID == "" {
		return j, errors.New("no job_id")
	}
	if j.Submit, err = parseSeconds("submit_s", cells[column["submit_s"]]); err != nil {
		return j, err
	}
	if text := cells[column["jct_s"]]; text != "" {
		j.Finished = true
		j.JCT, err = parseSeconds("jct_s", text)
	}
	return j, err
}

// maxParsed bounds the times read: a hundred years, in seconds.
const maxParsed = 100 * 365 * 24 * 3600

// parseSeconds reads a time >= 0 to the nanosecond.
func parseSeconds(column, text string) (time.Duration, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		v = math.NaN()
	}
	d, ok := toDuration(v)
	if !ok {
		return 0, fmt.Errorf("%s %q is not a number of seconds in 0..%d", column, text, int64(maxParsed))
	}
	return d, nil
}

// toDuration returns v seconds to the nanosecond, false if v is not in 0..maxParsed.
func toDuration(v float64) (time.Duration, bool) {
	if !(v >= 0 && v <= maxParsed) {
		return 0, false
	}
	whole, part := math.Modf(v)
	return time.Duration(whole)*time.Second + time.Duration(math.Round(part*1e9)), true
}
