package report_test

import (
	"fmt"
	"log"
	"regexp"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/report"
)

// A page opens with the best plan. Pages have no other files and no scripts from
// other sites.
func ExampleWriteHTML() {
	model := spec.Model{Name: "Llama3-8B", Layers: 32, SeqLen: 8192}
	h100 := spec.Accelerator{Name: "H100"}
	choice := planner.Choice{
		Config:     spec.Config{Model: model, Accelerator: h100, Shape: spec.NewShape(8), Plan: spec.Plan{DP: 8, ZeRO: 3, AccumSteps: 4}.Normal()},
		Prediction: spec.Prediction{Throughput: 9.3, Lo: 6.5, Hi: 13.4},
		Fits:       true,
	}
	in := report.Input{
		Request: planner.Request{Model: model, Accelerator: h100, Devices: 8, GlobalBatch: 32},
		Ranking: planner.Ranking{Choices: []planner.Choice{choice}, Evaluated: 120, Fitting: 60, Misses: 60},
	}
	var page strings.Builder
	if err := report.WriteHTML(&page, in); err != nil {
		log.Fatal(err)
	}
	_, body, _ := strings.Cut(page.String(), "<main>")
	body, _, _ = strings.Cut(body, "<dl")
	fmt.Println(strings.TrimSpace(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(body, "")))
	// Output:
	// Llama3-8B on 8 x H100
	// The fastest plan; 60 of 120 legal plans fit:
	// dp=8,tp=1,pp=1,mb=1,ga=4,zero=3
}
