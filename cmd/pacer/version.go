package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

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
		Before: noArgs,
		Action: func(c *cli.Context) error {
			if err := checkOutput(c); err != nil {
				return err
			}
			return emit(c, result{
				json: map[string]string{"version": versionString(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH},
				csv:  [][]string{{"version", "go", "os", "arch"}, {versionString(), runtime.Version(), runtime.GOOS, runtime.GOARCH}},
				table: func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "pacer %s, %s %s/%s\n", versionString(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
					return err
				},
			})
		},
	}
}
