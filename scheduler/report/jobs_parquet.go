package report

import (
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"

	"github.com/pacer-ml/pacer/perfmodel/columnar"
)

// ReadJobsParquet is ReadJobsCSV for a Parquet file of size bytes. Errors have the
// number of the row, from 1.
func ReadJobsParquet(r io.ReaderAt, size int64, name string) (out []JobRow, err error) {
	err = columnar.Guard(func() error {
		out, err = readJobsParquet(io.NewSectionReader(r, 0, size))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("report: %s: %w", name, err)
	}
	return out, nil
}

func readJobsParquet(r *io.SectionReader) ([]JobRow, error) {
	f, err := columnar.OpenParquet(r)
	if err != nil {
		return nil, err
	}
	for _, name := range jobsColumns {
		if name != "policy" && f.MetaData().Schema.ColumnIndexByName(name) < 0 {
			return nil, fmt.Errorf("no column %s, want a file of pacer simulate --jobs-out", name)
		}
	}
	var out []JobRow
	seen := map[[2]string]int{} // row by policy and job
	for i := range f.NumRowGroups() {
		group := f.RowGroup(i)
		c, err := newJobsGroup(f, group)
		if err != nil {
			return nil, err
		}
		for range group.NumRows() {
			row := len(out) + 1
			j, err := c.next()
			if err != nil {
				return nil, fmt.Errorf("row %d: %w", row, err)
			}
			key := [2]string{j.Policy, j.ID}
			if first, twice := seen[key]; twice {
				return nil, fmt.Errorf("row %d: job %s is also in row %d", row, j.ID, first)
			}
			seen[key] = row
			out = append(out, j)
		}
	}
	return out, nil
}

// jobsGroup reads the columns of a row group; policy may be nil.
type jobsGroup struct {
	policy, id  *columnar.Flat[parquet.ByteArray]
	submit, jct *columnar.Flat[float64]
}

func newJobsGroup(f *file.Reader, group *file.RowGroupReader) (c jobsGroup, err error) {
	if f.MetaData().Schema.ColumnIndexByName("policy") >= 0 {
		c.policy, err = flat[parquet.ByteArray](f, group, "policy")
	}
	if err == nil {
		c.id, err = flat[parquet.ByteArray](f, group, "job_id")
	}
	if err == nil {
		c.submit, err = flat[float64](f, group, "submit_s")
	}
	if err == nil {
		c.jct, err = flat[float64](f, group, "jct_s")
	}
	return c, err
}

func flat[T any](f *file.Reader, group *file.RowGroupReader, name string) (*columnar.Flat[T], error) {
	chunk, err := columnar.Chunk(f, group, f.MetaData().Schema.ColumnIndexByName(name))
	if err != nil {
		return nil, fmt.Errorf("column %s: %w", name, err)
	}
	col, ok := columnar.NewFlat[T](chunk)
	if !ok {
		return nil, fmt.Errorf("column %s has type %s, want a file of pacer simulate --jobs-out", name, chunk.Type())
	}
	return col, nil
}

func (c jobsGroup) next() (j JobRow, err error) {
	if c.policy != nil {
		policy, _, err := c.policy.Next()
		if err != nil {
			return j, fmt.Errorf("policy: %w", err)
		}
		j.Policy = string(policy)
	}
	id, ok, err := c.id.Next()
	if err != nil || !ok || len(id) == 0 {
		return j, errors.Join(errors.New("no job_id"), err)
	}
	j.ID = string(id)
	submit, there, err := c.submit.Next()
	if j.Submit, ok = toDuration(submit); err != nil || !there || !ok {
		return j, errors.Join(fmt.Errorf("job %s: submit_s is not a number of seconds in 0..%d", j.ID, int64(maxParsed)), err)
	}
	jct, ok, err := c.jct.Next()
	if err != nil {
		return j, fmt.Errorf("job %s: jct_s: %w", j.ID, err)
	}
	if !ok {
		return j, nil
	}
	if j.JCT, j.Finished = toDuration(jct); !j.Finished {
		return j, fmt.Errorf("job %s: jct_s is not a number of seconds in 0..%d", j.ID, int64(maxParsed))
	}
	return j, nil
}
