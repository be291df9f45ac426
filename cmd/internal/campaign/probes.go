package campaign

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// WriteProbes writes a campaign that measures probes, at least one, for pacer profile run. The
// most valuable probe is the first.
func WriteProbes(w io.Writer, r planner.Request, probes []planner.Probe) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "name: probes-%s\n", SafeName(r.Model.Name))
	fmt.Fprintf(&b, "description: >-\n  The measurements that would change the choice of a plan of %s most,\n  on %d %s with a global batch of %d.\n",
		r.Model.Name, r.Devices, r.Accelerator.Name, probes[0].Choice.Config.Plan.GlobalBatch())
	writeModel(&b, r.Model)
	fmt.Fprintf(&b, "accelerator: %s\n", r.Accelerator.Name)
	writeProbeSpace(&b, probes)
	fmt.Fprintln(&b, "choose: grid")
	_, err := w.Write(b.Bytes())
	return err
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// SafeName returns the name of a model as part of the name of a campaign.
func SafeName(model string) string {
	return strings.Trim(notInName.ReplaceAllString(model[:min(len(model), 48)], "-"), "-")
}

// writeModel names the model of the catalog, or describes another model.
func writeModel(w io.Writer, m spec.Model) {
	if known, err := catalog.Model(m.Name); err == nil && known == m {
		fmt.Fprintf(w, "models: [%s]\n", m.Name)
		return
	}
	fmt.Fprintf(w, "models:\n  - name: %s\n    kind: %s\n", SafeName(m.Name), m.Kind)
	for _, f := range []struct {
		key   string
		value int
	}{{"layers", m.Layers}, {"hidden", m.Hidden}, {"ffn", m.FFN}, {"heads", m.Heads}, {"kv_heads", m.KVHeads}, {"head_dim", m.HeadDim},
		{"vocab", m.Vocab}, {"seq_len", m.SeqLen}} {
		if f.value > 0 {
			fmt.Fprintf(w, "    %s: %d\n", f.key, f.value)
		}
	}
	fmt.Fprintf(w, "    gated_mlp: %v\n    tied_embeddings: %v\n", m.GatedMLP, m.TiedEmbeddings)
	if m.ParamCount > 0 {
		fmt.Fprintf(w, "    params: %g\n", m.ParamCount)
	}
}

// writeProbeSpace writes a space: its lists give the first probe, its plans the others.
func writeProbeSpace(w io.Writer, probes []planner.Probe) {
	fmt.Fprint(w, "space:\n  shapes: [")
	seen := map[string]bool{}
	for _, p := range probes {
		if s := p.Choice.Config.Shape.Devices; !seen[s] {
			if len(seen) > 0 {
				fmt.Fprint(w, ", ")
			}
			seen[s] = true
			fmt.Fprint(w, s)
		}
	}
	c := probes[0].Choice.Config
	p := c.Plan.Normal()
	fmt.Fprintf(w, "]\n  seq: %d\n  micro_batch: %d\n  accumulation: %d\n  tp: %d\n  pp: %d\n  zero: %d\n  sp: %v\n  recompute: %s\n  offload: %s\n  precision: %s\n",
		c.Seq(), p.MicroBatch, p.AccumSteps, p.TP, p.PP, p.ZeRO, p.SequenceParallel, p.Recompute, p.Offload, p.Precision)
	fmt.Fprintln(w, "  plans:")
	for _, p := range probes {
		fmt.Fprintf(w, "    - %s\n", p.Choice.Config.Plan)
	}
}
