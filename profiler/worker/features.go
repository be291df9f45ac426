package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// Features describes the Python interpreter that runs the worker, from its option --features.
type Features struct {
	Version    int            `json:"version"`
	Python     string         `json:"python"` // version
	Executable string         `json:"executable"`
	Torch      string         `json:"torch"`    // version, "" if the import fails
	Error      string         `json:"error"`    // error of the import
	CUDA       string         `json:"cuda"`     // CUDA version that torch was built for, "" = none
	Devices    int            `json:"devices"`  // number of visible CUDA devices
	Torchrun   bool           `json:"torchrun"` // torch.distributed.run exists
	Features   map[string]any `json:"features"` // see features.py
}

// ReadFeatures reads the file that --features --out wrote.
func ReadFeatures(file string) (Features, error) {
	var f Features
	text, err := os.ReadFile(file)
	if err != nil {
		return f, fmt.Errorf("worker: %w", err)
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return f, fmt.Errorf("worker: features: %w", err)
	}
	if f.Version != Version {
		return f, fmt.Errorf("worker: features of version %d, want %d", f.Version, Version)
	}
	if f.Torch == "" && f.Error == "" {
		return f, errors.New("worker: features name neither a torch version nor an error")
	}
	return f, nil
}
