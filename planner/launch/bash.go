package launch

import (
	"fmt"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// bash builds a shell script. Names of models and accelerators are user input: they
// are kept to one line in comments and quoted elsewhere.
type bash struct{ strings.Builder }

func (b *bash) line(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }

// comment writes a comment line.
func (b *bash) comment(format string, args ...any) {
	b.WriteString(strings.TrimRight("# "+oneLine(fmt.Sprintf(format, args...)), " ") + "\n")
}

// oneLine replaces control characters, so that user input cannot end a comment.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, s)
}

// title returns the lines that describe the job.
func title(c *spec.Config, f Framework) []string {
	a := c.Accelerator.Name
	if a == "" {
		a = "devices"
	}
	out := []string{
		fmt.Sprintf("%s on %s x %s, %d samples per step", c.Model.Name, c.Shape, a, c.Plan.GlobalBatch()),
		"plan: " + c.Plan.String(),
	}
	if seq := c.Seq(); seq > 0 {
		out[0] += fmt.Sprintf(" of %d tokens", seq)
	}
	return append(out, fmt.Sprintf("settings of %s", f.Version))
}

// head writes the beginning of a script.
func (b *bash) head(c *spec.Config, f Framework) {
	b.line("#!/usr/bin/env bash")
	for _, t := range title(c, f) {
		b.comment("%s", t)
	}
	b.line("set -euo pipefail")
	b.line("")
}

// array writes arguments as a bash array, one option per line.
func (b *bash) array(name string, args ...[]string) {
	b.line("%s=(", name)
	for _, words := range args {
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = quote(w)
		}
		b.line("  %s", strings.Join(quoted, " "))
	}
	b.line(")")
}

// quote quotes s as one word, except for plain words and for "${NAME:-default}" in
// double quotes, which the shell expands on purpose.
func quote(s string) string {
	if strings.HasPrefix(s, `"${`) && strings.HasSuffix(s, `}"`) && strings.Count(s, `"`) == 2 {
		return s
	}
	plain := s != ""
	for _, r := range s {
		plain = plain && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,+", r))
	}
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// torchrun writes the arguments of torchrun for the nodes of s. On several nodes the
// script runs on each, with NODE_RANK from 0 and MASTER_ADDR the first node.
func (b *bash) torchrun(s spec.Shape) {
	nodes := s.PerNode()
	if len(nodes) == 1 {
		b.array("TORCHRUN", []string{"torchrun"}, []string{"--standalone"}, []string{"--nproc-per-node", itoa(nodes[0])})
		return
	}
	b.comment("Run this on every node, with NODE_RANK from 0 and MASTER_ADDR the address of the first.")
	b.line(`: "${MASTER_ADDR:?the address of node 0}" "${NODE_RANK:?0 to %d}"`, len(nodes)-1)
	perNode := itoa(nodes[0])
	if s.Most() != s.Least() {
		b.line("DEVICES=(%s)", strings.ReplaceAll(s.Devices, "+", " "))
		perNode = `"${DEVICES[NODE_RANK]}"`
	}
	b.array("TORCHRUN", []string{"torchrun"}, []string{"--nnodes", itoa(len(nodes))}, []string{"--nproc-per-node", perNode},
		[]string{"--node-rank", `"${NODE_RANK}"`}, []string{"--master-addr", `"${MASTER_ADDR}"`}, []string{"--master-port", `"${MASTER_PORT:-29500}"`})
}

// tf32 sets the format of 32-bit multiplications in the environment, where torch and
// cuBLAS read it.
func (b *bash) tf32(p spec.Precision) {
	switch p {
	case spec.TF32:
		b.line("export TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1")
	case spec.FP32:
		b.line("export NVIDIA_TF32_OVERRIDE=0")
	}
}
