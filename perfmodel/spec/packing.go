package spec

import (
	"fmt"
	"strings"
)

// WithPacked returns m with samples of packed documents of that mean length in tokens, and with the length behind the
// name, since measurements of m say little about them. 0 changes nothing.
func (m Model) WithPacked(tokens int) Model {
	if tokens > 0 {
		m.Packed = tokens
		m.Name += fmt.Sprintf(" (packed=%d)", tokens)
	}
	return m
}

// Plain returns m without packing, adapter and imbalance, with the name that it had before WithImbalance, WithPacked and
// Adapted.
func (m Model) Plain() Model {
	m.Name = strings.TrimSuffix(m.Name, Model{}.WithImbalance(m.Imbalance).Name)
	m.Name = strings.TrimSuffix(m.Name, fmt.Sprintf(" (packed=%d)", m.Packed))
	m.Name = strings.TrimSuffix(m.Name, " ("+m.Adapter.String()+")")
	m.Packed, m.Adapter, m.Imbalance = 0, Adapter{}, 0
	return m
}

// Document returns the tokens that attend to each other in a sample of seq tokens: seq, or Packed if that is fewer.
func (m *Model) Document(seq int) int {
	if m.Packed > 0 && m.Packed < seq {
		return m.Packed
	}
	return seq
}
