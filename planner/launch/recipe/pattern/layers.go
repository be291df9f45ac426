package pattern

import (
	"regexp"
	"strconv"
	"strings"
)

// maxLayout bounds the length of a pipeline layout.
const maxLayout = 1 << 15

var timesGroup = regexp.MustCompile(`\(([^()]*)\)\*(\d+)`)

// Layout writes out the groups of a pipeline layout: (tt|)*2t is tt|tt|t.
func Layout(layout string) string {
	return timesGroup.ReplaceAllStringFunc(layout, func(group string) string {
		m := timesGroup.FindStringSubmatch(group)
		n, err := strconv.Atoi(m[2])
		if err != nil || n*len(m[1]) > maxLayout {
			return m[1]
		}
		return strings.Repeat(m[1], n)
	})
}

var timesPart = regexp.MustCompile(`^\(?\[?([01])\]?(?:\*(\d+))?\)?$`)

// DenseLayers returns the number of layers without experts of --moe-layer-freq, such as ([0]*3+[1]*58), and every if
// every n-th layer has experts; ok is false for a pattern that has no such form.
func DenseLayers(pattern string, layers int) (dense, every int, ok bool) {
	if n, err := strconv.Atoi(pattern); err == nil && n >= 1 {
		return layers - layers/n, n, true
	}
	if m := regexp.MustCompile(`^\(\[0\]\*(\d+)\+\[1\]\)\*\d+(\+\[0\]\*\d+)?$`).FindStringSubmatch(pattern); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil || n >= layers {
			return 0, 0, false
		}
		return layers - layers/(n+1), n + 1, true
	}
	total := 0
	for i, part := range strings.Split(strings.Trim(pattern, "()"), "+") {
		m := timesPart.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil {
			return 0, 0, false
		}
		n := 1
		if m[2] != "" {
			n, _ = strconv.Atoi(m[2])
		}
		if total += n; total > layers {
			return 0, 0, false
		}
		if m[1] == "0" && i == 0 {
			dense = n
		} else if m[1] == "0" {
			return 0, 0, false
		}
	}
	return dense, 1, total == layers
}

// Hybrid counts the layers of a hybrid network. A layer is a mixer, attention or an MLP.
type Hybrid struct {
	Mixers, Attention, MLPs int
	Sparse                  int // of Attention
	Ahead                   int // modules that predict further tokens
	Unknown                 []rune
}

// HybridOf reads a letter for each layer: M a mixer, G linear attention, * attention, - an MLP, E experts, and C, D and H
// sparse attention. | ends a pipeline stage; after / stand modules that predict further tokens.
func HybridOf(text string) (h Hybrid) {
	layers, ahead, _ := strings.Cut(text, "/")
	if ahead != "" {
		h.Ahead = strings.Count(ahead, "/") + 1
	}
	for _, c := range layers {
		switch c {
		case 'M', 'G':
			h.Mixers++
		case '*':
			h.Attention++
		case 'C', 'D', 'H':
			h.Attention++
			h.Sparse++
		case '-', 'E':
			h.MLPs++
		case '|':
		default:
			h.Unknown = append(h.Unknown, c)
		}
	}
	return h
}
