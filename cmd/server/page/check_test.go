package page_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/pacer-ml/pacer/cmd/server"
)

// launchFile is a script of Megatron-LM without the type of device.
const launchFile = `#!/bin/bash
NODES=${NODES:-2}
torchrun --nproc-per-node 8 --nnodes $NODES pretrain_gpt.py \
  --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention --num-query-groups 8 \
  --swiglu --seq-length 8192 --max-position-embeddings 8192 --vocab-size 128256 --untie-embeddings-and-output-weights \
  --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 128 --bf16 \
  --use-distributed-optimizer --train-samples 1000000 --turnip 7
`

// paste puts text into the form of the view and asks.
func (b *tab) paste(text string, values map[string]string) {
	b.t.Helper()
	asText := func(v any) string {
		out, err := json.Marshal(v)
		if err != nil {
			b.t.Fatal(err)
		}
		return string(out)
	}
	eval[bool](b, `(() => { const f = document.querySelector("#view form"), v = `+asText(values)+`; f.elements.text.value = `+asText(text)+`;
		for (const name in v) f.elements[name].value = v[name]; f.requestSubmit(); return true; })()`)
}

// TestBrowserCheck pastes and drops launch files.
func TestBrowserCheck(t *testing.T) {
	b := open(t, server.Options{})
	b.load("/?view=check&accelerator=h100")
	b.run(chromedp.Click(`//button[text()="Check an example"]`, chromedp.BySearch))
	b.wait(`document.querySelector("#view .facts") && !document.body.textContent.includes("Check an example") && document.querySelector("#view h2").textContent.includes("The plan fits")`)
	b.accessible()
	b.load("/?view=check&model=llama3-8b&accelerator=h100&devices=16&batch=128")
	b.run(chromedp.Click("#view button.go"))
	b.wait(`document.querySelector("#view .wrong").textContent.includes("no launch file")`)

	b.paste(launchFile, map[string]string{"accelerator": "", "devices": "16"})
	b.wait(`document.querySelector("#view .note")?.textContent.includes("which devices it is for")`)
	b.paste(launchFile, map[string]string{"accelerator": "h100", "measured": "15", "to": "b200", "price": "2"})
	b.wait(`document.querySelectorAll("#view table").length === 2`)
	for _, says := range []string{"The plan fits", "dp=4", "--turnip", "On B200", "The measured step", "data loading"} {
		if !strings.Contains(b.text("#view"), says) {
			t.Errorf("the answer does not say %q", says)
		}
	}
	if got := eval[string](b, `document.querySelector("#view pre").textContent`); !strings.Contains(got, "---") && !strings.Contains(got, "+++") {
		t.Errorf("no diff: %s", got)
	}
	b.accessible()
	if strings.Contains(b.address(), "turnip") || strings.Contains(b.address(), "pretrain") {
		t.Errorf("the address holds the file: %s", b.address())
	}
	b.clean()

	// The text stays in the tab while other views are shown.
	b.run(chromedp.Click(`//nav/a[text()="Trust"]`, chromedp.BySearch))
	b.wait(`document.querySelector("#h-stack")`)
	b.run(chromedp.Click(`//nav/a[text()="Check"]`, chromedp.BySearch))
	b.wait(`document.querySelectorAll("#view table").length === 2`)
	b.run(chromedp.Click(`//p/button[text()="Ask about it"]`, chromedp.BySearch))
	b.wait(`new URLSearchParams(location.search).get("plan")?.includes("tp=2") && !location.search.includes("view=check") && document.querySelector("#plan")`)

	b.load("/?view=check&accelerator=h100&model=llama3-8b&devices=8&batch=64")
	file := filepath.Join(t.TempDir(), "ds_config.json")
	if err := os.WriteFile(file, []byte(`{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	b.run(chromedp.SetUploadFiles(`#view input[type="file"]`, []string{file}))
	b.wait(`document.querySelector("#view .note")?.textContent.includes("model")`)
	b.run(chromedp.SetValue(`#view input[name="model"]`, "llama3-8b"), chromedp.SetValue(`#view input[name="devices"]`, "8"), chromedp.SetValue(`#view input[name="seq"]`, "4096"), chromedp.Click("#view button.go"))
	b.wait(`document.querySelector("#view")?.textContent.includes("zero=3")`)
	b.clean()
}

// TestBrowserCheckHostile pastes what is no launch file, and what wants to be markup.
func TestBrowserCheckHostile(t *testing.T) {
	b := open(t, server.Options{})
	b.load("/?view=check&accelerator=h100")
	for _, c := range []struct{ text, says string }{
		{"<script>fault()</script><img src=x onerror=fault()>", ""},
		{"\x00\x01\x02", ""},
		{strings.Repeat("x", 1<<20+1), "more than a launch file"},
		{"torchrun pretrain_gpt.py --tensor-model-parallel-size $(touch /tmp/x) --num-layers '<b>bold</b>'", ""},
		{strings.Repeat("{", 100000), ""},
	} {
		b.paste(c.text, nil)
		b.wait(`document.querySelector("#view .wrong").textContent + (document.querySelector("#view h2")?.textContent ?? "") !== ""`)
		if got := b.text("#view"); !strings.Contains(got, c.says) {
			t.Errorf("%.40q: %.300s", c.text, got)
		}
		if eval[bool](b, `document.querySelector("#view img, #view script, #view b") !== null`) {
			t.Errorf("%.40q became markup", c.text)
		}
	}
	b.clean()
}
