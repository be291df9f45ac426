package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// CSV makes a table of JSON objects: a column per field in order of appearance, an empty cell
// for an absent field. Fields of nested objects are named PARENT.FIELD, lists are joined
// by semicolons.
func CSV[T any](objects []T) ([][]string, error) {
	var header []string
	var cells []map[string]string
	for _, o := range objects {
		b, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		row := map[string]string{}
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.UseNumber()
		if err := flatten(dec, "", func(name, value string) {
			if !slices.Contains(header, name) {
				header = append(header, name)
			}
			row[name] = value
		}); err != nil {
			return nil, err
		}
		cells = append(cells, row)
	}
	table := [][]string{header}
	for _, row := range cells {
		line := make([]string, len(header))
		for i, name := range header {
			line[i] = row[name]
		}
		table = append(table, line)
	}
	return table, nil
}

// flatten calls put for every scalar and list below the next value of dec.
func flatten(dec *json.Decoder, name string, put func(name, value string)) error {
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	switch tok {
	case json.Delim('{'):
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			if err := flatten(dec, strings.TrimPrefix(name+"."+key.(string), "."), put); err != nil {
				return err
			}
		}
		_, err = dec.Token()
		return err
	case json.Delim('['):
		return joinList(dec, name, put)
	}
	put(name, scalar(tok))
	return nil
}

// joinList puts the elements of a list, its opening bracket read, in one cell.
// Objects in a list stay JSON.
func joinList(dec *json.Decoder, name string, put func(name, value string)) error {
	var items []string
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		items = append(items, text)
	}
	put(name, strings.Join(items, ";"))
	_, err := dec.Token()
	return err
}

func scalar(tok json.Token) string {
	if tok == nil {
		return ""
	}
	return fmt.Sprint(tok)
}
