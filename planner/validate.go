package planner

// Validate reports what makes r no question: a figure that is missing or out of
// range.
func (r Request) Validate() error {
	_, err := r.normal()
	return err
}
