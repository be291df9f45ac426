package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Served are the files of a worker with the option --serve, which measures requests one after another in one process.
// Each is of one device, or of one rank alone.
type Served struct {
	Dir string
	n   int
}

// Write writes the next request, which the worker then begins. It returns the number of the point and the path of its
// result, for ReadResult.
func (s *Served) Write(r Request) (number int, out string, err error) {
	file := filepath.Join(s.Dir, fmt.Sprintf("%d.json", s.n+1))
	if err := r.Write(file + ".part"); err != nil {
		return 0, "", err
	}
	if err := os.Rename(file+".part", file); err != nil { // the worker sees it whole
		return 0, "", fmt.Errorf("worker: %w", err)
	}
	s.n++
	return s.n, filepath.Join(s.Dir, fmt.Sprintf("%d.out", s.n)), nil
}

// End makes the worker end after the requests so far.
func (s *Served) End() error {
	if err := os.WriteFile(filepath.Join(s.Dir, "end"), nil, 0o600); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}

// measuredLine begins the line that the worker prints after each point, see DONE in __main__.py.
const measuredLine = "pacer_worker: measured point "

// Measured returns the number of the point that a line of the worker's output says is measured. Points have numbers
// from 1.
func Measured(line string) (number int, ok bool) {
	text, ok := strings.CutPrefix(strings.TrimSpace(line), measuredLine)
	if !ok {
		return 0, false
	}
	_, err := fmt.Sscanf(text, "%d", &number)
	return number, err == nil && fmt.Sprint(number) == text
}
