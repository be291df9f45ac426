package accuracy

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/pacer-ml/pacer/scheduler/report"
)

// Section is the name of the reports' section in a document: see report.Splice.
const Section = "accuracy"

// mostParts is the largest number of parts of a Result that are printed.
const mostParts = 12

// Markdown writes results as a section of a document: the table, the parts, the
// rows refused, the notes.
func Markdown(results []Result) []byte {
	var b bytes.Buffer
	b.WriteString("Errors are of the step time (dl2: of the speed; memory: of the peak), as a fraction of the measured value. *Left out*: no parameter\n" +
		"was fitted to a scored row. *In view*: constants were chosen or fitted with the scored rows in view; *in sample*: all of them were\n" +
		"fitted: this is **not accuracy**.\n" +
		"Half-widths are of ln step time. A regret is over choices among at least three measured plans. One star: within the required limit;\n" +
		"two: within the aim; brackets: in view or in sample; parentheses: too few rows predicted for a comparison.\n\n")
	writeProtocols(&b, results)
	figures := FigureTable(results)
	table(&b, figures[0], figures[1:])
	fold(&b, "Errors of every family under every protocol", func() {
		stats := ErrorTable(results)
		table(&b, stats[0], stats[1:])
	})
	writeParts(&b, results)
	writeRefused(&b, results)
	writeNotes(&b, results)
	return b.Bytes()
}

func writeProtocols(b *bytes.Buffer, results []Result) {
	used := map[string]bool{}
	for _, r := range results {
		used[r.Protocol] = true
	}
	for _, p := range Protocols() {
		if used[p.Name] {
			fmt.Fprintf(b, "- `%s`: %s\n", p.Name, p.Doc)
		}
	}
	b.WriteByte('\n')
}

func writeParts(b *bytes.Buffer, results []Result) {
	var rows [][]string
	for _, r := range results {
		if len(r.Parts) > mostParts || !r.comparable() {
			continue
		}
		for _, p := range r.Parts {
			rows = append(rows, append(append([]string{r.Protocol, r.Family, p.Name}, p.counts()...), p.errorCells()...))
		}
	}
	if len(rows) == 0 {
		return
	}
	fold(b, "By source, job type or model", func() {
		table(b, []string{"protocol", "family", "of", "rows", "refused", "mean", "median", "p95", "in 90 %", "half-width"}, rows)
	})
}

// fold writes a collapsed section.
func fold(b *bytes.Buffer, title string, write func()) {
	fmt.Fprintf(b, "\n<details><summary>%s</summary>\n\n", title)
	write()
	b.WriteString("\n</details>\n")
}

// writeRefused names the rows refused by families that predict most rows, each under
// its first protocol. For other families it counts the rows.
func writeRefused(b *bytes.Buffer, results []Result) {
	type refused struct{ family, row, why string }
	seen := map[refused]bool{}
	var all []remark
	for _, r := range results {
		if n := len(r.Refusals); n > 0 && !r.comparable() {
			all = append(all, remark{r.Protocol, r.Family, fmt.Sprintf("%d rows, such as %s: %s", n, r.Refusals[0].Row, r.Refusals[0].Why)})
			continue
		}
		var fresh []Refusal
		for _, f := range r.Refusals {
			if k := (refused{r.Family, f.Row, f.Why}); !seen[k] {
				seen[k] = true
				fresh = append(fresh, f)
			}
		}
		for _, why := range byReason(fresh) {
			all = append(all, remark{r.Protocol, r.Family, why.String()})
		}
	}
	writeRemarks(b, "Refused rows, each under the first protocol that refuses it (counted only if most are refused; `--output json` names all)", all)
}

func writeNotes(b *bytes.Buffer, results []Result) {
	var all []remark
	for _, r := range results {
		for _, n := range r.Notes {
			all = append(all, remark{r.Protocol, r.Family, n})
		}
	}
	writeRemarks(b, "Notes", all)
}

// remark is a note on a result.
type remark struct{ protocol, family, text string }

// writeRemarks lists remarks; one that holds for several families is one line.
func writeRemarks(b *bytes.Buffer, title string, all []remark) {
	if len(all) == 0 {
		return
	}
	fold(b, title, func() {
		done := map[remark]bool{}
		for _, r := range all {
			if done[remark{r.protocol, "", r.text}] {
				continue
			}
			done[remark{r.protocol, "", r.text}] = true
			var families []string
			for _, other := range all {
				if other.protocol == r.protocol && other.text == r.text {
					families = append(families, "`"+other.family+"`")
				}
			}
			fmt.Fprintf(b, "- `%s`, %s: %s\n", r.protocol, strings.Join(families, ", "), report.EscapeMarkdown(r.text))
		}
	})
}

// table writes a table.
func table(b *bytes.Buffer, header []string, rows [][]string) {
	b.WriteString(report.Table{Header: header, Rows: rows}.Markdown())
}
