package listing

import (
	"context"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// stackEntry is one training stack of pacer ls stacks.
type stackEntry struct {
	Name     string        `json:"name"`
	Aliases  []string      `json:"aliases"`
	Releases []stack.Stack `json:"releases"`
	Source   string        `json:"source"`
}

// stacks lists the training stacks: a line for each release, with the parts that differ from the release before.
func stacks(context.Context, *datadir.Dir) (out []entry, err error) {
	for _, name := range stack.Names() {
		e := stackEntry{Name: name, Aliases: query.OrEmpty(stack.Aliases(name))}
		for _, r := range stack.All() {
			if r.Name == name {
				e.Releases, e.Source = append(e.Releases, r), r.Source
			}
		}
		brief := e.lines()
		full := append(brief[:len(brief):len(brief)], []string{"", "", "", "source: " + e.Source, ""})
		out = append(out, entry{Names: append([]string{name}, e.Aliases...), Lines: full, Brief: brief, Object: e})
	}
	return out, nil
}

func (e *stackEntry) lines() (out [][]string) {
	before := stack.Usual()
	for i, r := range e.Releases {
		line := []string{"", r.Version, r.Date, r.Parts.Changes(before), ""}
		if i == 0 {
			line[0], line[4] = e.Name, strings.Join(e.Aliases, ", ")
		}
		out, before = append(out, line), r.Parts
	}
	return out
}

// parts lists the parts of training stacks: a line for each value.
func parts(context.Context, *datadir.Dir) (out []entry, err error) {
	type value struct {
		Name  string `json:"name"`
		Doc   string `json:"doc"`
		Usual bool   `json:"usual"`
	}
	usual := stack.Usual()
	for _, k := range stack.Kinds() {
		lines, values := [][]string{{k.Name, "", k.Doc}}, []value{}
		for _, v := range k.Values {
			doc := v.Doc
			if v.Name == k.Of(&usual) {
				doc += " (usual)"
			}
			lines = append(lines, []string{"", v.Name, doc})
			values = append(values, value{v.Name, v.Doc, v.Name == k.Of(&usual)})
		}
		out = append(out, entry{Names: []string{k.Name}, Lines: lines, Object: map[string]any{"name": k.Name, "doc": k.Doc, "values": values}})
	}
	return out, nil
}
