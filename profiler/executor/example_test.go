//go:build linux

package executor_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/executor"
)

// The command starts a process that outlives it; that process has ended when Run returns.
func ExampleLocal_Run() {
	exit, err := executor.Local{Grace: 50 * time.Millisecond}.Run(context.Background(), profiler.Command{
		Args: []string{"sh", "-c", "setsid sleep 1000 & echo out of memory; exit 3"},
	})
	fmt.Printf("status %d, %d stray process, output %q, error %v\n", exit.Code, exit.Stray, exit.Tail, err)
	// Output: status 3, 1 stray process, output "out of memory\n", error <nil>
}
