package datasets

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// The importer names what it does not read, once for each file, and says how a header is to be written.
func TestPublishedNotes(t *testing.T) {
	root := fstest.MapFS{
		"a.csv": {Data: []byte("row_id,model,accelerator,num_gpus,zero,step_time_s\nx,Llama3-8B,h100,8,3,1\ny,Llama3-8B,h100,8,3,1\n")},
		"b.csv": {Data: []byte("row_id,model,accelerator,num_gpus,zero_stage,step_time_s\nx,Llama3-8B,h100,8,3,1\n")},
		"c.csv": {Data: []byte("colour\nred\n")},
	}
	if got, want := publishedNotes(root), []string{`a.csv: column "zero" is not known and ignored, did you mean zero_stage?`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for header, want := range map[string]string{
		"Row_ID,Model,accelerator,step_time_s": `no column row_id ("Row_ID" is another name), model ("Model" is another name), the header is`,
		"row_id;model;accelerator;step_time_s": "no column row_id, model, accelerator: want commas between columns, the header is",
		"row_id,model,accelerator,peak":        "no column step_time_s (seconds), throughput_value or mem_gib (GiB)",
	} {
		_, err := publishedImporter.Open(fstest.MapFS{"a.csv": {Data: []byte(header + "\n1,Llama3-8B,h100,1\n")}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", header, err, want)
		}
	}
}
