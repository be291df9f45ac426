package command

import (
	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/profiler/store"
)

// CategoryMeasurements are the flags that select stored measurements.
const CategoryMeasurements = "Measurements"

// FilterFlags select measurements of the store.
func FilterFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "model", Usage: "select measurements of `MODEL` (repeatable)", Category: CategoryMeasurements},
		&cli.StringSliceFlag{Name: "accelerator", Usage: "select measurements on `ACCELERATOR` (repeatable)", Category: CategoryMeasurements},
		&cli.StringSliceFlag{Name: "source", Usage: "select measurements from `SOURCE`, such as rubick (repeatable)", Category: CategoryMeasurements},
	}
}

// StoreFilter reads FilterFlags.
func StoreFilter(c *cli.Context) store.Filter {
	return store.Filter{Models: c.StringSlice("model"), Accelerators: c.StringSlice("accelerator"), Sources: c.StringSlice("source")}
}
