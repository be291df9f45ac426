package accuracy

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// importAll reads a data set of the shared directory, DIR/data/NAME, in file order.
// It leaves invalid rows out.
func importAll(ctx context.Context, shared, name string) ([]spec.Measurement, error) {
	root, err := dataDir(shared, name)
	if err != nil {
		return nil, err
	}
	rows, _, err := datasets.ReadAll(ctx, name, root)
	if err != nil {
		return nil, fmt.Errorf("accuracy: %w", err)
	}
	return rows, nil
}

// dataDir returns DIR/data/NAME.
func dataDir(shared, name string) (fs.FS, error) {
	dir := filepath.Join(shared, "data", name)
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return nil, fmt.Errorf("accuracy: %s is not a directory: set PACER_SHARED to the directory with data/%s", dir, name)
	}
	return os.DirFS(dir), nil
}
