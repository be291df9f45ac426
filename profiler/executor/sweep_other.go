//go:build !linux

package executor

import "context"

// Sweep ends the processes of runs whose supervisors were killed. Only Linux has supervisors.
func Sweep(context.Context) (killed []string, err error) { return nil, nil }
