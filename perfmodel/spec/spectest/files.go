package spectest

import (
	"io/fs"
	"os"
	"testing"
)

// ReadFile is os.ReadFile that fails the test.
func ReadFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// WriteFile is os.WriteFile that fails the test.
func WriteFile(t testing.TB, name string, data []byte, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, data, mode); err != nil {
		t.Fatal(err)
	}
}
