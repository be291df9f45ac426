package firstgc

import (
	"os"
	"runtime"
	"runtime/debug"
)

// growth is the growth of the heap in percent before the first collection, of 4 MiB: it comes at 64 MiB.
const growth = 1600

// Go initializes packages in the order of their names, each after its imports: this one imports so little that it comes
// before most.
func init() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(growth)
	runtime.AddCleanup(&first{}, func(int) { restore(usual) }, 0)
}

// first is garbage from the beginning: its cleanup runs after the first collection.
type first struct{ _ *int }

// restore sets the growth back, unless the program has set another one since.
func restore(usual int) {
	if now := debug.SetGCPercent(usual); now != growth {
		debug.SetGCPercent(now)
	}
}
