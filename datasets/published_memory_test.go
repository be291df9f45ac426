package datasets

import (
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestMemKind: column mem_kind says what a peak counts; without it, the facts about the source do. Neither may be known.
func TestMemKind(t *testing.T) {
	header := "row_id,source,framework,model,layers,hidden,heads,seq_len,vocab,accelerator,num_gpus,dp,micro_batch,source_path,mem_gib,mem_kind\n"
	for row, want := range map[string]struct{ kind, framework string }{
		"a,MooreThreads/SimuMax,Megatron-LM,m,4,512,8,512,32000,A100-80GB-SXM,1,1,1,x,10,":         {"allocated", "Megatron-LM overlap=none sequence=always cp=a2a dispatch=all-to-all"},
		"b,MooreThreads/SimuMax,Megatron-LM,m,4,512,8,512,32000,A100-80GB-SXM,1,1,1,x,10,reserved": {"reserved", "Megatron-LM overlap=none sequence=always cp=a2a dispatch=all-to-all"},
		"c,pytorch/torchtitan,,m,4,512,8,512,32000,A100-80GB-SXM,1,1,1,b/llama3_202506_x.md,10,":   {"", "torchtitan@2025-06"},
		"d,mine,Megatron-LM,m,4,512,8,512,32000,A100-80GB-SXM,1,1,1,x,10,device":                   {"device", "Megatron-LM"},
		"e,mine,Megatron-LM,m,4,512,8,512,32000,A100-80GB-SXM,1,1,1,x,10,used":                     {"error", ""},
	} {
		for r, err := range PublishedRows(t.Context(), "rows.csv", strings.NewReader(header+row+"\n"), nil, true) {
			if err != nil {
				if want.kind != "error" || !strings.Contains(err.Error(), "is not one of allocated, reserved, device") {
					t.Errorf("%s: %v", row, err)
				}
				continue
			}
			m := r.Measurement
			if got := m.Env[spec.EnvMemKind]; got != want.kind || m.Config.Framework != want.framework {
				t.Errorf("%s: counts %q on %q, want %q on %q", row, got, m.Config.Framework, want.kind, want.framework)
			}
		}
	}
}
