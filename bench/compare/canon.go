package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A line is one value of an output and its place there.
type line struct{ path, value string }

// texts are fields and columns with wording that may change. They are compared by presence.
var texts = []string{"doc", "why", "reason", "warning", "warnings", "note", "notes", "change", "description", "standing",
	"unable", "example", "text", "remark", "error", "stopped", "limits", "reading", "contradiction", "illegal"}

// volatile are the fields and columns that differ from run to run.
var volatile = []string{"elapsed_s", "created", "wall_s", "version", "commit", "go", "at", "first", "last", "held_s",
	"revision", "built", "mem_used_bytes", "used_gib"}

// canonical lists the compared values of an outcome. Texts are compared by presence only. rename
// gives the new name of a field and of a value.
func canonical(o outcome, r *renames, old bool) []line {
	c := &canon{renames: r, old: old, measured: strings.Contains(o.Command, " profile run ") || strings.Contains(o.Command, " profile status")}
	if o.File != nil {
		c.file(strings.TrimPrefix(o.Command, "show "), o.File)
		return c.lines
	}
	c.add("exit", fmt.Sprint(o.Exit))
	c.output(o.Stdout, outputFormat(o.Command))
	c.add("stderr lines", fmt.Sprint(countLines(o.Stderr)))
	return c.lines
}

type canon struct {
	renames  *renames
	old      bool
	lines    []line
	measured bool // device-hours are times of this machine
}

func (c *canon) volatile(name string) bool {
	return slices.Contains(volatile, name) || c.measured && name == "device_hours"
}

func (c *canon) add(path, value string) { c.lines = append(c.lines, line{path, value}) }

func (c *canon) field(name string) string {
	if c.old {
		return c.renames.field(name)
	}
	return name
}

func (c *canon) value(name string) string {
	if c.old {
		return c.renames.value(name)
	}
	return name
}

var formatFlag = regexp.MustCompile(`(?:^| )(?:--output|-o|--output=)[ =]?(json|csv)(?: |$)`)

func outputFormat(command string) string {
	if m := formatFlag.FindStringSubmatch(command); m != nil {
		return m[1]
	}
	return "table"
}

func countLines(text []byte) int {
	n := 0
	for l := range bytes.Lines(text) {
		if len(bytes.TrimSpace(l)) > 0 {
			n++
		}
	}
	return n
}

func (c *canon) output(text []byte, format string) {
	switch {
	case format == "json" && c.json("", text):
	case format == "csv" && c.csv("", text):
	default:
		c.table(text)
	}
}

func (c *canon) file(name string, text []byte) {
	switch filepath.Ext(name) {
	case ".json":
		if c.json(name+" ", text) {
			return
		}
	case ".csv":
		if c.csv(name+" ", text) {
			return
		}
	case ".html", ".svg", ".parquet", ".arrow":
		c.add(name, fmt.Sprint(len(text) > 0))
		return
	case ".bin": // a trained policy: without its lengths, the version that wrote it, and its checksum
		if len(text) > 20 {
			text = writtenBy.ReplaceAll(text[16:len(text)-4], nil)
		}
		c.add(name, fmt.Sprintf("%x", sha256.Sum256(text)))
		return
	}
	for l := range strings.Lines(string(text)) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") && !strings.HasPrefix(l, "//") {
			c.add(name, l)
		}
	}
}

var writtenBy = regexp.MustCompile(`"pacer":"[^"]*"`)

// table keeps the figures of each line that has some.
func (c *canon) table(text []byte) {
	for l := range strings.Lines(string(text)) {
		if figures := figure.FindAllString(l, -1); len(figures) > 0 {
			c.add("table", strings.Join(figures, " "))
		}
	}
}

var figure = regexp.MustCompile(`\b[0-9][0-9.,]*(?:e[+-]?[0-9]+)?`)

func (c *canon) json(path string, text []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var value any
	if dec.Decode(&value) != nil || dec.More() {
		return false
	}
	c.walk(path, "", value)
	return true
}

func (c *canon) walk(path, name string, value any) {
	if c.volatile(name) {
		c.add(path, "any")
		return
	}
	switch v := value.(type) {
	case map[string]any:
		fields := map[string]any{}
		for k, x := range v {
			if k = c.field(k); k != "" && !c.renames.added[k] {
				fields[k] = x
			}
		}
		for _, k := range slices.Sorted(maps.Keys(fields)) {
			at := path + "." + k
			if path == "" || strings.HasSuffix(path, " ") {
				at = path + k
			}
			c.walk(at, k, fields[k])
		}
	case []any:
		c.add(path, fmt.Sprintf("%d of", len(v)))
		for i, x := range v {
			c.walk(fmt.Sprintf("%s[%d]", path, i), name, x)
		}
	case string:
		c.add(path, c.cell(name, v))
	default:
		c.add(path, fmt.Sprint(v))
	}
}

// cell is a text as it is compared: whole, or whether there is any.
func (c *canon) cell(name, text string) string {
	switch {
	case c.volatile(name):
		return "any"
	case !slices.Contains(texts, name):
		return fmt.Sprintf("%q", c.value(text))
	case text == "":
		return `""`
	}
	return "text"
}

func (c *canon) csv(path string, text []byte) bool {
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(rows) == 0 {
		return false
	}
	head := rows[0]
	for i := range head {
		head[i] = c.field(head[i])
	}
	for n, row := range rows[1:] {
		for i, cell := range row {
			name := head[i]
			if name == "" || c.renames.added[name] {
				continue
			}
			at := fmt.Sprintf("%s%d.%s", path, n+1, name)
			if strings.HasPrefix(cell, "{") && c.json(at+" ", []byte("["+strings.ReplaceAll(cell, "};{", "},{")+"]")) {
				continue
			}
			c.add(at, c.cell(name, cell))
		}
	}
	return true
}
