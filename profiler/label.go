package profiler

import "fmt"

// CheckLabel reports what makes s unfit for Options.Label.
func CheckLabel(s string) error {
	if err := checkName("label", s); err != nil {
		return fmt.Errorf("profiler: %w", err)
	}
	return nil
}
