// Package command runs verbs with github.com/urfave/cli and adds what that library lacks:
// flags after arguments, flags that hold several settings, errors in the program's own words
// as text or JSON, exit codes, and help that fits 80 columns.
//
// Start with run.go (one run of a program), flags.go (global flags and checks of values),
// groups.go (flags of the form --space zero=0+1,recompute=none) and exit.go.
package command
