package serve

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/server/access"
)

// tokensFile, in the data directory, has the tokens of pacer serve.
const tokensFile = "tokens.json"

// TokenCommand is pacer token.
func TokenCommand() *cli.Command {
	file := &cli.StringFlag{Name: "file", Usage: "keep the tokens in `FILE`", DefaultText: tokensFile + " of --data"}
	name := &cli.StringFlag{Name: "name", Usage: "`NAME` of the token, in logs and lists"}
	return &cli.Command{
		Name:  "token",
		Usage: "make, list and revoke tokens for pacer serve",
		Description: `A token is printed once, when it is made; the file has its SHA-256 only. A running
server reads the file again within a second of a change, so a token is replaced
without a restart: create the new one, move the clients, revoke the old one.

   pacer token create --name ci --scope ingest --expires 2160h
   pacer serve --listen 0.0.0.0:8470 --tokens tokens.json
   pacer token revoke --name ci`,
		Subcommands: []*cli.Command{
			{Name: "create", Usage: "make a token and print it", Before: command.NoArgs, Action: createToken, Flags: []cli.Flag{file, name,
				&cli.StringSliceFlag{Name: "scope", Usage: "allow `SCOPE`: read, ingest, fit or admin, which includes the others (repeatable)"},
				&cli.DurationFlag{Name: "expires", Usage: "end the token after `TIME`", DefaultText: "never"}}},
			{Name: "ls", Usage: "list the tokens", Before: command.NoArgs, Action: listTokens, Flags: []cli.Flag{file}},
			{Name: "revoke", Usage: "delete a token", Before: command.NoArgs, Action: revokeToken, Flags: []cli.Flag{file, name}},
		},
	}
}

// tokenFile returns the file of tokens of a command.
func tokenFile(c *cli.Context) (string, error) {
	if f := c.String("file"); f != "" {
		return f, nil
	}
	dir, err := datadir.Of(c).Path()
	return filepath.Join(dir, tokensFile), err
}

// readTokens returns the tokens of a command and their file.
func readTokens(c *cli.Context) (path string, tokens []access.Token, err error) {
	if path, err = tokenFile(c); err != nil {
		return "", nil, err
	}
	tokens, err = access.ReadTokens(path)
	return path, tokens, err
}

func createToken(c *cli.Context) error {
	path, tokens, err := readTokens(c)
	if err != nil {
		return err
	}
	name := c.String("name")
	if slices.ContainsFunc(tokens, func(t access.Token) bool { return t.Name == name }) {
		return fail.Usagef("token create: --name %q is taken; pacer token revoke deletes it", name)
	}
	now := time.Now()
	var expires time.Time
	if d := c.Duration("expires"); c.IsSet("expires") {
		expires = now.Add(d)
	}
	t, secret, err := access.NewToken(name, splitScopes(c.StringSlice("scope")), now, expires)
	if err != nil {
		return fail.Usagef("token create: %w", err)
	}
	if err := access.WriteTokens(path, append(tokens, t)); err != nil {
		return err
	}
	fmt.Fprintf(c.App.ErrWriter, "token: %s of %s has its SHA-256; it is shown only now\n", name, path)
	_, err = fmt.Fprintln(c.App.Writer, secret)
	return err
}

// splitScopes splits scopes given as one list, read,ingest.
func splitScopes(given []string) (out []string) {
	for _, s := range given {
		out = append(out, strings.Split(s, ",")...)
	}
	return out
}

func revokeToken(c *cli.Context) error {
	path, tokens, err := readTokens(c)
	if err != nil {
		return err
	}
	name := c.String("name")
	left := slices.DeleteFunc(slices.Clone(tokens), func(t access.Token) bool { return t.Name == name })
	if len(left) == len(tokens) {
		return fail.Usagef("token revoke: --name %q is no token of %s", name, path)
	}
	return access.WriteTokens(path, left)
}

func listTokens(c *cli.Context) error {
	_, tokens, err := readTokens(c)
	if err != nil {
		return err
	}
	rows := make([]tokenRow, len(tokens))
	for i, t := range tokens {
		rows[i] = tokenRow{t.Name, strings.Join(t.Scopes, ","), "valid", t.Created, t.Expires}
		if t.Expired(time.Now()) {
			rows[i].State = "expired"
		}
	}
	table, err := console.CSV(rows)
	if err != nil {
		return err
	}
	return command.Print(c, console.Result{JSON: map[string]any{"tokens": rows}, CSV: table})
}

// tokenRow is a token in the output.
type tokenRow struct {
	Name    string    `json:"name"`
	Scopes  string    `json:"scopes"`
	State   string    `json:"state"` // valid or expired
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
}
