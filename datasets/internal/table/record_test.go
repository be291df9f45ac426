package table

import (
	"strings"
	"testing"
)

// Every reading method names file, line, column and value of the first invalid cell.
func TestRecord(t *testing.T) {
	const text = "\ufeffname,n,x\r\n a ,4.0,-1.5\n\n\"b,c\",1.5,x\n,0,\nshort,1\n"
	var got []string
	for r, err := range Read(strings.NewReader(text), "t.csv", "name", "n") {
		if err == nil {
			name, n, x := r.Need("name"), r.NeedCount("n"), r.Float("x")
			if err = r.Err(); err == nil && (name != "a" || n != 4 || x != -1.5 || r.Str("none") != "") {
				t.Errorf("line %d: %q, %d, %g", r.Line, name, n, x)
			}
		}
		if err != nil {
			got = append(got, err.Error())
		}
	}
	want := []string{`datasets: t.csv:4: n "1.5": is not a whole number in 0..1073741824`,
		`datasets: t.csv:5: name "": is missing`, `datasets: t.csv:6: has 2 cells, the header 3`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
}
