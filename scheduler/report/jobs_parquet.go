package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"
)

// ReadJobsParquet is ReadJobsCSV for size bytes of a Parquet file; errors count
// its rows from 1.
func ReadJobsParquet(r io.ReaderAt, size int64, name string) (out []JobRow, err error) {
	defer func() { // the library panics at some damaged files
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("report: %s: the file is damaged: %v", name, p)
		}
	}()
	out, err = readJobsParquet(io.NewSectionReader(r, 0, size))
	if err != nil {
		return nil, fmt.Errorf("report: %s: %w", name, err)
	}
	return out, nil
}

func readJobsParquet(r *io.SectionReader) ([]JobRow, error) {
	f, err := file.NewParquetReader(r, file.WithReadProps(parquet.NewReaderProperties(memory.NewGoAllocator())))
	if err != nil {
		return nil, fmt.Errorf("not a whole Parquet file: %w", err)
	}
	var leaves []int
	for _, want := range jobsColumns {
		at := f.MetaData().Schema.ColumnIndexByName(want)
		if at < 0 && want != "policy" {
			return nil, fmt.Errorf("no column %s, want a file of pacer simulate --jobs-out", want)
		}
		if at >= 0 {
			leaves = append(leaves, at)
		}
	}
	in, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{BatchSize: rowsPerGroup}, memory.NewGoAllocator())
	if err != nil {
		return nil, err
	}
	records, err := in.GetRecordReader(context.Background(), leaves, nil)
	if err != nil {
		return nil, err
	}
	defer records.Release()
	var out []JobRow
	seen := map[[2]string]int{}
	for records.Next() {
		if out, err = appendJobs(out, records.Record(), seen); err != nil {
			return nil, err
		}
	}
	if err := records.Err(); err != nil && err != io.EOF {
		return nil, err
	}
	return out, nil
}

// jobsRecord is the columns read of some rows; Policy may be nil.
type jobsRecord struct {
	Policy, ID  *array.String
	Submit, JCT *array.Float64
}

func newJobsRecord(rec arrow.Record) (c jobsRecord, err error) {
	for i, f := range rec.Schema().Fields() {
		ok := false
		switch f.Name {
		case "policy":
			c.Policy, ok = rec.Column(i).(*array.String)
		case "job_id":
			c.ID, ok = rec.Column(i).(*array.String)
		case "submit_s":
			c.Submit, ok = rec.Column(i).(*array.Float64)
		case "jct_s":
			c.JCT, ok = rec.Column(i).(*array.Float64)
		}
		if !ok {
			return c, fmt.Errorf("column %s is %s, not as pacer simulate --jobs-out writes it", f.Name, f.Type)
		}
	}
	return c, nil
}

// appendJobs adds the rows of rec; seen has the rows before by policy and job.
func appendJobs(out []JobRow, rec arrow.Record, seen map[[2]string]int) ([]JobRow, error) {
	c, err := newJobsRecord(rec)
	if err != nil {
		return nil, err
	}
	for i := range int(rec.NumRows()) {
		row := len(out) + 1
		j, err := c.row(i)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", row, err)
		}
		key := [2]string{j.Policy, j.ID}
		if first, twice := seen[key]; twice {
			return nil, fmt.Errorf("row %d: job %s was in row %d already", row, j.ID, first)
		}
		seen[key] = row
		out = append(out, j)
	}
	return out, nil
}

func (c jobsRecord) row(i int) (j JobRow, err error) {
	if c.Policy != nil && c.Policy.IsValid(i) {
		j.Policy = strings.Clone(c.Policy.Value(i)) // the value is part of a buffer
	}
	if c.ID.IsNull(i) || c.ID.Value(i) == "" {
		return j, errors.New("no job_id")
	}
	j.ID = strings.Clone(c.ID.Value(i))
	var ok bool
	if j.Submit, ok = toDuration(c.Submit.Value(i)); !ok || c.Submit.IsNull(i) {
		return j, fmt.Errorf("job %s: submit_s is not a number of seconds in 0..%d", j.ID, int64(maxParsed))
	}
	if c.JCT.IsNull(i) {
		return j, nil
	}
	if j.JCT, ok = toDuration(c.JCT.Value(i)); !ok {
		return j, fmt.Errorf("job %s: jct_s is not a number of seconds in 0..%d", j.ID, int64(maxParsed))
	}
	j.Finished = true
	return j, nil
}
