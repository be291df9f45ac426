package policy

type curveKey struct{ kindOf }
type curve struct{}
