package command

import (
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// Messages of the flag package.
var (
	flagUnknown = regexp.MustCompile(`^flag provided but not defined: -+(.+)$`)
	flagValue   = regexp.MustCompile(`^invalid (?:boolean )?value ("(?:[^"\\]|\\.)*") for (?:flag )?-+([^:]+): (.+)$`)
	flagAlone   = regexp.MustCompile(`^flag needs an argument: -+(.+)$`)
)

// usageError words an error of the flag library as this program does.
func usageError(c *cli.Context, err error, _ bool) error {
	flags, help := c.App.Flags, "pacer --help"
	if c.Command != nil && c.Command.Name != "" && c.Command.Name != c.App.Name {
		flags, help = c.Command.Flags, c.Command.HelpName+" --help"
	}
	text := err.Error()
	if m := flagUnknown.FindStringSubmatch(text); m != nil {
		return fail.Usagef("unknown flag %s%s (see %s)", dashed(m[1]), suggestFlag(m[1], flags), help)
	}
	if m := flagAlone.FindStringSubmatch(text); m != nil {
		return fail.Usagef("%s needs a value (see %s)", longName(m[1], flags), help)
	}
	if m := flagValue.FindStringSubmatch(text); m != nil {
		return fail.Usagef("%s %s %s (see %s)", longName(m[2], flags), strings.Trim(m[1], `"`), NotA(findFlag(m[2], flags), m[3]), help)
	}
	return fail.Usagef("%w (see %s)", err, help)
}

// NotA completes "--flag value ..." for a value that the flag package rejects for a reason.
func NotA(f cli.Flag, reason string) string {
	switch f.(type) {
	case *cli.IntFlag, *cli.Int64Flag:
		if reason == "value out of range" {
			return "is out of range"
		}
		return "is not a whole number"
	case *cli.Float64Flag:
		return "is not a number"
	case *cli.DurationFlag:
		return "is not a time with its unit, such as 30s or 10m"
	case *cli.BoolFlag:
		return "is not true or false"
	}
	return "cannot be read: " + reason
}

func findFlag(name string, flags []cli.Flag) cli.Flag {
	for _, f := range flags {
		for _, n := range f.Names() {
			if n == name {
				return f
			}
		}
	}
	return nil
}

// longName is the first name of the flag called name, with its dashes.
func longName(name string, flags []cli.Flag) string {
	if f := findFlag(name, flags); f != nil {
		return dashed(f.Names()[0])
	}
	return dashed(name)
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// suggestFlag proposes a flag with a similar name, "" if there is none.
func suggestFlag(name string, flags []cli.Flag) string {
	var names []string
	for _, f := range flags {
		names = append(names, f.Names()[0])
	}
	if like := similar(name, names); like != "" {
		return ", did you mean --" + like + "?"
	}
	return ""
}

// suggestion proposes a similar key, "" if there is none.
func suggestion(key string, keys []string) string {
	if like := similar(key, keys); like != "" {
		return ", did you mean " + like + "?"
	}
	return ""
}

// similar returns the name that differs from name by a slip or two, "" if there is none.
func similar(name string, names []string) string {
	for _, like := range named.Nearest(name, names, 1) {
		if named.Distance(name, like) <= max((len(name)+1)/3, 1) || strings.HasPrefix(like, name) && len(name) > 1 {
			return like
		}
	}
	return ""
}

// wrongVerb returns an error if args name an unknown command; the flags after it are not
// read then.
func wrongVerb(app *cli.App, args []string) error {
	head, rest, flags, cmds := leaf(app, args)
	for _, a := range head[min(1, len(head)):] {
		name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if len(a) > 1 && a[0] == '-' && findFlag(name, flags) == nil {
			return nil // an unknown flag: the next word may be its value
		}
	}
	if len(cmds) == 0 || len(rest) == 0 || len(rest[0]) == 0 || rest[0][0] == '-' || rest[0] == "help" || rest[0] == "h" {
		return nil
	}
	return unknownVerb(rest[0], cmds)
}

func unknownVerb(name string, cmds []*cli.Command) error {
	names := commandNames(cmds)
	if like := similar(name, names); like != "" {
		return fail.Usagef("unknown command %q, did you mean %s? There are: %s", name, like, strings.Join(names, ", "))
	}
	return fail.Usagef("unknown command %q; there are: %s", name, strings.Join(names, ", "))
}
