package experiment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pacer-ml/pacer/scheduler/hostspeed"
)

// readHostSpeeds reads the speeds of jobs by CPUs and memory of their hosts; path "" = they
// have no effect. The truth has to have one speed for each grant, and no colocated jobs.
func (s *Simulation) readHostSpeeds(path string) error {
	if path == "" {
		return nil
	}
	if s.truth.tables != nil || s.truth.pairs != nil || s.truth.servers != nil {
		return invalid("host-speeds", path, "conflicts with {truth} %s, want one of single jobs with a fixed batch", s.truth.Name)
	}
	f, err := os.Open(path)
	if err != nil {
		var failed *os.PathError
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return invalidBecause("host-speeds", path, fmt.Errorf("%s: %w", path, err))
	}
	defer f.Close()
	if s.hosts, err = hostspeed.Read(f, path); err != nil {
		return invalidBecause("host-speeds", path, err)
	}
	s.Notes = append(s.Notes, "speeds depend on CPUs and memory of hosts by "+filepath.Base(path))
	return nil
}
