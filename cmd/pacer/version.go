package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/urfave/cli/v2"
)

// version is stamped by the Makefile; without it the module's own is used.
var version = ""

func versionString() string {
	if version != "" {
		return version
	}
	if bi, ok := debug.ReadBuildInfo(); ok && bi.Main.Version != "" {
		return bi.Main.Version
	}
	return "(devel)"
}

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:   "version",
		Usage:  "print version and build",
		Before: command.NoArgs,
		Action: func(c *cli.Context) error {
			return command.Print(c, console.Result{
				JSON: map[string]string{"version": versionString(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH},
				CSV:  [][]string{{"version", "go", "os", "arch"}, {versionString(), runtime.Version(), runtime.GOOS, runtime.GOARCH}},
				Table: func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "pacer %s, %s %s/%s\n", versionString(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
					return err
				},
			})
		},
	}
}
