package plan

import (
	"fmt"
	"io"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/memory"
)

// printExplanation prints two tables, without parts that are 0.
func printExplanation(w io.Writer, e *query.Explanation) error {
	if err := printShares(w, e.Sec, "step s", 3); err != nil {
		return err
	}
	if e.GiB != nil {
		if err := printShares(w, e.GiB, "GiB", 2); err != nil {
			return err
		}
		printPeak(w, e.Peak)
	}
	return printStacks(w, e)
}

// printPeak prints where and when the memory of the table above is in use.
func printPeak(w io.Writer, p *query.MemPeak) {
	var of []string
	if p.Stages > 1 {
		of = append(of, fmt.Sprintf("stage %d of %d", p.Stage+1, p.Stages))
	}
	switch p.At {
	case "":
	case memory.AtLoss:
		of = append(of, "while computing the loss")
	default:
		of = append(of, "during the "+string(p.At))
	}
	if len(of) > 0 {
		fmt.Fprintln(w, "peak: "+strings.Join(of, ", "))
	}
}

// printStacks prints the training stacks that a prediction assumes, with the parts in which they differ.
func printStacks(w io.Writer, e *query.Explanation) error {
	if len(e.Stacks) == 0 {
		return nil
	}
	table := [][]string{{"training stack", "probability", "step time", "parts"}}
	for i, s := range e.Stacks {
		parts := s.Parts.String()
		if i > 0 {
			parts = s.Parts.Changes(e.Stacks[0].Parts)
		}
		table = append(table, []string{s.Framework, fmt.Sprintf("%.0f %%", 100*s.Probability), fmt.Sprintf("x %.2f", s.StepRatio), parts})
	}
	fmt.Fprintln(w)
	if err := console.WriteTable(w, table); err != nil {
		return err
	}
	if d := e.Decisive(); d != nil {
		if e.Measured {
			console.Wrap(w, "Measured rows of this accelerator and training stack are in the prediction and the probabilities. The step times are what the request would give with the stack stated: for another stack, without these rows.")
		}
		console.Wrap(w, fmt.Sprintf("The training stack is left open. --framework %q would change the step time most: x %.2f.", d.Framework, d.StepRatio))
	}
	return nil
}

// printShares prints sizes with their shares of the total; host memory is not part of it.
func printShares(w io.Writer, shares []query.Share, unit string, digits int) error {
	total := 0.0
	for _, s := range shares {
		if s.Name != "host" {
			total += s.Size
		}
	}
	table := [][]string{{"part", unit, "share"}}
	for _, s := range shares {
		switch {
		case s.Size < total/1e4:
		case s.Name == "host":
			table = append(table, []string{s.What, number.Significant(s.Size, digits), ""})
		default:
			table = append(table, []string{s.What, number.Significant(s.Size, digits), fmt.Sprintf("%.1f %%", 100*s.Size/total)})
		}
	}
	fmt.Fprintln(w)
	return console.WriteTable(w, table)
}
