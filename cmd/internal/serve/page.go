package serve

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/server/page"
)

// PageCommand is pacer page.
func PageCommand() *cli.Command {
	return &cli.Command{
		Name:  "page",
		Usage: "write the web page of pacer serve as static files that need no server",
		Description: `The page answers in the browser, by the same code as WebAssembly: predictions, plans,
curves, memory, launch files. It has no measurements and no simulations, which need
pacer serve. Any host of static files can serve the directory, from any path:

   pacer page --out public
   python3 -m http.server -d public 8000

Browsers do not run it from file://. It loads nothing from other sites.`,
		Flags:  []cli.Flag{&cli.StringFlag{Name: "out", Usage: "write to `DIR`, which is made; it may have an earlier page", Category: "Output"}},
		Action: runPage,
	}
}

func runPage(c *cli.Context) error {
	dir := c.String("out")
	switch {
	case c.Args().Present():
		return fail.Usagef("page: unexpected argument %q", c.Args().First())
	case dir == "":
		return fail.Usagef("page: --out is missing: which directory?")
	}
	if err := page.Write(dir); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	fmt.Fprintf(c.App.Writer, "%s has the page: python3 -m http.server -d %s 8000 serves it at http://localhost:8000\n", dir, dir)
	return nil
}
