package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pacer-ml/pacer/scheduler/report"
)

func main() {
	if err := run(os.Args[1:], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "renew:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader) error {
	if len(args) != 2 {
		return errors.New("want a document and the name of a place in it")
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if len(text) == 0 {
		return fmt.Errorf("nothing to put at %s: what should have written it failed", args[1])
	}
	return report.SpliceFile(args[0], text, args[1])
}
