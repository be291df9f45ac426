package huggingface

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// config is the object of a config.json while it is read. It keeps the first error.
type config struct {
	modelType string
	fields    map[string]json.RawMessage
	outer     *config // the network that has this as its language model; nil = none
	warnings  []error
	err       error
}

func decode(r io.Reader) (*config, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("huggingface: %w", err)
	}
	if len(b) > maxBytes {
		return nil, fmt.Errorf("huggingface: %w: more than %d MiB", ErrConfig, maxBytes>>20)
	}
	c := &config{}
	dec := json.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&c.fields); err != nil {
		return nil, fmt.Errorf("huggingface: %w: %w", ErrConfig, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("huggingface: %w: there is text after the object", ErrConfig)
	}
	if len(c.fields) == 0 {
		return nil, fmt.Errorf("huggingface: %w: it is empty", ErrConfig)
	}
	c.modelType = cmp.Or(c.word("model_type"), c.word("_class_name"))
	return c, nil
}

// language returns the part for the language model; multimodal networks have an object for it.
func (c *config) language() *config {
	if c.has("hidden_size", "d_model", "n_embd") && (c.has("num_hidden_layers", "n_layer", "num_layers") || !c.has("text_config")) {
		return c
	}
	if text, ok := pairs[c.modelType]; ok {
		sub := &config{modelType: text}
		if json.Unmarshal(c.fields["text_config"], &sub.fields) != nil || sub.fields == nil {
			sub.fields = map[string]json.RawMessage{}
		}
		for _, key := range []string{"vision_config", "projection_dim"} {
			if !sub.has(key) || key == "vision_config" {
				sub.fields[key] = c.fields[key]
			}
		}
		return sub
	}
	for _, key := range []string{"text_config", "llm_config", "language_config", "thinker_config"} {
		sub := &config{}
		if raw, ok := c.fields[key]; !ok || json.Unmarshal(raw, &sub.fields) != nil || len(sub.fields) == 0 {
			continue
		}
		if key == "thinker_config" { // of Qwen-Omni, with parts of its own
			text := &config{fields: map[string]json.RawMessage{"text_config": sub.fields["text_config"]}}
			if sub = text.language(); sub == text {
				continue
			}
			sub.outer = c
			return sub
		}
		if sub.modelType = sub.word("model_type"); sub.modelType == "" {
			sub.modelType = c.modelType
		}
		if _, ok := sub.fields["tie_word_embeddings"]; !ok && c.has("tie_word_embeddings") {
			sub.fields["tie_word_embeddings"] = c.fields["tie_word_embeddings"]
		}
		for field, v := range nestedDefaults[sub.modelType] {
			if !sub.has(field) {
				sub.set(field, v)
			}
		}
		sub.outer = c
		return sub
	}
	return c
}

// name is the last element of _name_or_path, unless that is a local path.
func (c *config) name() string {
	path := strings.TrimRight(c.word("_name_or_path"), "/")
	if strings.HasPrefix(path, ".") || strings.Count(path, "/") > 1 {
		return ""
	}
	return path[strings.LastIndex(path, "/")+1:]
}

func (c *config) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Errorf(format, args...))
}

// set gives a field a number.
func (c *config) set(key string, v any) { c.fields[key] = json.RawMessage(fmt.Sprint(v)) }

// has reports whether any of the fields exists and is not null.
func (c *config) has(keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return c.value(k) != nil })
}

func (c *config) value(key string) json.RawMessage {
	raw := c.fields[key]
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return nil
	}
	return raw
}

// count returns the first of the fields that exists, a whole number in 0..most, or 0. A list that has the same number
// for each layer counts as that number. Anything else is an error.
func (c *config) count(most int, keys ...string) int {
	for _, key := range keys {
		raw := c.value(key)
		if raw == nil {
			continue
		}
		var v float64
		var each []float64
		err := json.Unmarshal(raw, &v)
		if json.Unmarshal(raw, &each) == nil && len(each) > 0 && slices.Min(each) == slices.Max(each) {
			v, err = each[0], nil
		}
		if err != nil || v != math.Trunc(v) || v < 0 || v > float64(most) {
			c.fail("%s=%s is not a whole number in 0..%d", key, truncate(raw), most)
			return 0
		}
		return int(v)
	}
	return 0
}

// ratio returns a positive number of a field, else def.
func (c *config) ratio(key string, def float64) float64 {
	raw := c.value(key)
	if raw == nil {
		return def
	}
	var v float64
	if err := json.Unmarshal(raw, &v); err != nil || !(v > 0) || v > maxWidth {
		c.fail("%s=%s is not a number in 0..%d", key, truncate(raw), maxWidth)
		return def
	}
	return v
}

// flag returns a boolean field, else def.
func (c *config) flag(key string, def bool) bool {
	raw := c.value(key)
	if raw == nil {
		return def
	}
	var v bool
	if json.Unmarshal(raw, &v) != nil {
		c.fail("%s=%s is not true or false", key, truncate(raw))
		return def
	}
	return v
}

// word returns a field that is text, else "".
func (c *config) word(key string) string {
	var s string
	if json.Unmarshal(c.fields[key], &s) != nil || len(s) > 256 {
		return ""
	}
	return s
}

func (c *config) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// truncate shortens a value for an error.
func truncate(raw json.RawMessage) string {
	if len(raw) > 40 {
		return string(raw[:40]) + "..."
	}
	return string(raw)
}
