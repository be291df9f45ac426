//go:build !unix

package executor

import (
	"context"
	"fmt"
	"os"

	"github.com/pacer-ml/pacer/profiler"
)

func (l Local) run(_ context.Context, _ string, _ profiler.Command, out *os.File) (profiler.Exit, error) {
	defer out.Close()
	return profiler.Exit{}, fmt.Errorf("executor: commands can run on Linux and macOS only: %w", profiler.ErrSetup)
}
