package datasets

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// collect drains an importer. Every row must be a measurement that the store
// would take, or a *RowError.
func collect(t testing.TB, name string, root fs.FS) (ms []spec.Measurement, rowErrs []*RowError) {
	t.Helper()
	imp, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	for m, err := range imp.Import(context.Background(), root) {
		var re *RowError
		switch {
		case errors.As(err, &re):
			rowErrs = append(rowErrs, re)
		case err != nil:
			t.Fatal(err)
		default:
			if err := m.Validate(); err != nil {
				t.Fatalf("%s: %v", m.Origin, err)
			}
			ms = append(ms, m)
		}
	}
	if n, err := count(imp, root); err != nil || n != len(ms)+len(rowErrs) {
		t.Errorf("Count() = %d, %v, Import yielded %d rows", n, err, len(ms)+len(rowErrs))
	}
	return ms, rowErrs
}

// count returns the number of values that an import will yield.
func count(imp Importer, root fs.FS) (int, error) {
	rows, err := imp.Open(root)
	if err != nil {
		return 0, err
	}
	return rows.Count()
}

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-9*math.Abs(want) }

// TestImportersAreComplete: an importer has all fields, and the full commit of its repository.
func TestImportersAreComplete(t *testing.T) {
	fullCommit := regexp.MustCompile(`^[0-9a-f]{40}$`)
	for _, i := range Importers() {
		if i.Doc == "" || i.License == "" || i.URL == "" || i.Dir == "" || i.Open == nil {
			t.Errorf("%s: a field is not set: %+v", i.Name, i)
		}
		if strings.HasPrefix(i.URL, "https://") && !fullCommit.MatchString(i.Commit) {
			t.Errorf("%s: commit %q is not the 40 digits of a commit of %s", i.Name, i.Commit, i.URL)
		}
	}
}

// clones holds a small clone of each data set and the folders that may be imported, as Importer.Dir
// names them; "above" are folders above the clone.
var clones = map[string]struct {
	files   fstest.MapFS
	folders []string
	above   []string
}{
	"dl2":   {fstest.MapFS{"DL2/ps_speed.csv": file(dl2Head + "net,dist_sync,32,1,1,5\n")}, []string{".", "DL2"}, nil},
	"gavel": {fstest.MapFS{"scheduler/some_throughputs.json": file(gavelCut)}, []string{".", "scheduler"}, []string{"x"}},
	"rubick": {fstest.MapFS{
		"simulator/traces/vit/placements.csv":  file("exec_plan,placement,iter_time\nga,1,0.1\n"),
		"simulator/traces/bert/placements.csv": file("exec_plan,placement,iter_time\nga,1,0.1\nga,2,0\n"),
	}, []string{".", "simulator", "simulator/traces"}, []string{"x", "x/y"}},
	"sia": {fstest.MapFS{
		"sia-simulator/traces/bert/placements-aws.csv":  file(siaPlaced + "1,4,0.5,0.01\n"),
		"sia-simulator/traces/bert/scalability-rtx.csv": file(siaSpread + "4,1,0.5,2,9\n"),
		"sia-simulator/traces/ncf/placements-aws.csv":   file(siaPlaced + "1,4,0.5,0.01\n"),
	}, []string{".", "sia-simulator", "sia-simulator/traces"}, []string{"x"}},
	"published": {fstest.MapFS{
		"data/published/table.csv": file("row_id,model,accelerator,num_gpus,seq_len,micro_batch,global_batch,step_time_s\nr1,Llama3-8B,H100,8,8192,1,8,2\n"),
	}, []string{".", "data/published"}, nil},
}

// TestAnyFolderGivesTheSameRows imports each folder of a clone that DIR may be. Rows with the same
// origins are stored once.
func TestAnyFolderGivesTheSameRows(t *testing.T) {
	for _, imp := range Importers() {
		clone, ok := clones[imp.Name]
		if !ok {
			t.Errorf("%s: clones has no example of it", imp.Name)
			continue
		}
		want, _ := collect(t, imp.Name, clone.files)
		if len(want) == 0 {
			t.Errorf("%s: no rows", imp.Name)
		}
		for _, folder := range clone.folders {
			sub, err := fs.Sub(clone.files, folder)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := collect(t, imp.Name, sub); !cmp.Equal(want, got) {
				t.Errorf("%s: in %s (-clone +folder):\n%s", imp.Name, folder, cmp.Diff(want, got))
			}
			if name := folder[strings.LastIndex(folder, "/")+1:]; imp.Name != "dl2" && folder != "." && !strings.Contains(imp.Dir, name) {
				t.Errorf("%s: %q does not name folder %s", imp.Name, imp.Dir, folder)
			}
		}
		for _, above := range clone.above {
			parent := fstest.MapFS{}
			for name, f := range clone.files {
				parent[above+"/"+name] = f
			}
			if got, _ := collect(t, imp.Name, parent); !cmp.Equal(want, got) {
				t.Errorf("%s: below %s (-clone +above):\n%s", imp.Name, above, cmp.Diff(want, got))
			}
		}
		if strings.Contains(imp.Dir, "above the clone") != (clone.above != nil) {
			t.Errorf("%s: %q, and folders above the clone %q", imp.Name, imp.Dir, clone.above)
		}
	}
}

// TestForeignTable: a table with other columns is a fault of its own, wherever it comes in the order.
func TestForeignTable(t *testing.T) {
	root := fstest.MapFS{
		"bert/placements.csv":  file("day,rain\n1,2\n3,4\n"),
		"gpt2/placements.csv":  file("exec_plan,placement,iter_time\nga,1,0.1\n"),
		"t5/placements.csv":    file(""),
		"vit/placements.csv":   file("exec_plan,placement,iter_time\nga,1,0.1\nga,1\n"),
		"other/placements.csv": file("exec_plan,placement,iter_time\nga,1,0.1\nga,1,0.2\n"), // not a model
	}
	ms, bad := collect(t, "rubick", root)
	var faults []string
	for _, b := range bad {
		faults = append(faults, b.Error())
	}
	want := []string{
		"datasets: bert/placements.csv: no column exec_plan, placement, iter_time, the header is day,rain",
		`datasets: other/placements.csv: folder "other": "other" is not a model of the data set`,
		"datasets: t5/placements.csv: the file is empty",
		"datasets: vit/placements.csv:3: has 2 cells, the header 3",
	}
	if d := cmp.Diff(want, faults); d != "" || len(ms) != 2 {
		t.Errorf("%d rows, faults (-want +got):\n%s", len(ms), d)
	}

	delete(root, "gpt2/placements.csv")
	delete(root, "vit/placements.csv")
	delete(root, "other/placements.csv")
	imp, _ := Lookup("rubick")
	_, err := imp.Open(root)
	wantErr := "datasets: rubick: bert/placements.csv: no column exec_plan, placement, iter_time, the header is day,rain; t5/placements.csv: the file is empty"
	if err == nil || err.Error() != wantErr {
		t.Errorf("error %v, want %s", err, wantErr)
	}
	for _, err := range imp.Import(t.Context(), root) {
		if err == nil || err.Error() != wantErr {
			t.Errorf("Import: error %v, want %s", err, wantErr)
		}
	}
}
