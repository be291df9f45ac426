package trace

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/datasets/internal/table"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// Format describes a workload format and the published trace in it.
type Format struct {
	Name    string // as in --workload FILE:NAME
	Doc     string
	License string // of the published trace, "" where there is none
	URL     string // where that is published
	Commit  string // the revision the reader was written for
}

// formatReader detects and reads one format.
type formatReader struct {
	name   string
	source Format // Name and Doc are those of the format
	doc    string
	// header are the columns that identify the format; nil for files without a header.
	header []string
	// begins is how files without a header begin, "" = not identified by that.
	begins string
	// member is the name of the file within an archive, or of the first table of a directory,
	// without extensions.
	member  string
	dated   bool // times of submission are since 1970
	tables  bool // the trace is a directory of tables
	several bool // a file can hold several traces, each with a name
	jobs    func(in *input) iter.Seq2[spec.Job, error]
}

// formatReaders is ordered from the most specific header to the least.
var formatReaders = []formatReader{
	{name: "csv", doc: "job_id,submit_s,gpus,duration_s[,model,plan,tenant,steps,weight,deadline_s,guaranteed,cpus_per_gpu,host_gib_per_gpu]",
		header: []string{"job_id", "submit_s", "gpus"}, jobs: readCSV},
	{name: "rubick", doc: "workloads of the simulator of Rubick (Zhang et al., MLSys 2025)", source: rubickTrace,
		header: []string{"name", "submission_time", "application", "num_gpus", "exec_plan"}, jobs: readRubickWorkload},
	{name: "gavel", doc: "job_id,arrival_s,job_type,scale_factor,total_steps,duration_on_v100_s,priority_weight", source: gavelTrace,
		header: []string{"job_id", "arrival_s", "job_type", "scale_factor", "total_steps"}, jobs: readGavelWorkload},
	{name: "gavel-trace", doc: "Gavel's own traces, ten tab-separated columns or the older seven (Narayanan et al., OSDI 2020)", source: gavelTrace,
		jobs: readGavelTrace},
	{name: "pollux", doc: "workloads of the simulator of Pollux (Qiao et al., OSDI 2021)", source: polluxTrace,
		header: []string{"name", "time", "application", "num_replicas", "batch_size"}, jobs: readPolluxWorkload},
	{name: "sia", doc: "workloads of the simulator of Sia (Jayaram Subramanya et al., SOSP 2023)", source: siaTrace, jobs: readSiaWorkload},
	{name: "blox", doc: "jobs of the simulator of Blox (Agarwal et al., EuroSys 2024): job_id,submit_s,gpus,duration_s by number", source: bloxTrace,
		jobs: readBloxWorkload},
	{name: "philly", doc: "cluster_job_log of Microsoft's Philly, 2017 (Jeon et al., ATC 2019)", source: phillyTrace,
		begins: "[", member: "cluster_job_log", dated: true, jobs: readPhilly},
	{name: "philly-csv", doc: "Philly's jobs as Pollux's artifact has them: timestamp,duration,num_gpus,gpu_time,cluster", source: phillyTrace,
		header: []string{"timestamp", "duration", "num_gpus", "gpu_time", "cluster"}, dated: true, jobs: readPhillyCSV},
	{name: "acme", doc: "trace_seren.csv and trace_kalos.csv of Shanghai AI Laboratory, 2023 (Hu et al., NSDI 2024)", source: acmeTrace,
		header: []string{"job_id", "user", "gpu_num", "type", "submit_time", "gpu_time"}, dated: true, jobs: readAcme},
	{name: "helios", doc: "cluster_log.csv of SenseTime's Helios, 2020 (Hu et al., SC 2021)", source: heliosTrace,
		header: []string{"job_id", "vc", "gpu_num", "submit_time", "duration"}, member: "cluster_log", dated: true, jobs: readHelios},
	{name: "pai2020", doc: "the directory of pai_job_table and pai_task_table of Alibaba's PAI, 2020 (Weng et al., NSDI 2022)", source: pai2020Trace,
		member: "pai_job_table", tables: true, dated: true, jobs: readPAI2020},
	{name: "pai2023", doc: "openb_pod_list of Alibaba's PAI, 2023 (Weng et al., ATC 2023)", source: pai2023Trace,
		header: []string{"name", "num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time"}, jobs: readPAI2023},
	{name: "alibaba-spot", doc: "job_info_df.csv of Alibaba's spot GPU trace, 2026", source: alibabaSpotTrace,
		header: []string{"job_name", "gpu_request", "worker_num", "submit_time", "job_type"}, jobs: readAlibabaSpot},
	{name: "tiresias", doc: "job lists of the simulator of Tiresias (Gu et al., NSDI 2019)", source: tiresiasTrace,
		header: []string{"job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration"}, jobs: readTiresias},
	{name: "dl2", doc: "jobs with parameter servers of the simulator of DL2 (Peng et al., TPDS 2021): config,trace,job,arrival_slot,type,model,epochs", source: dl2Trace,
		header: []string{"config", "trace", "job", "arrival_slot", "type", "model", "epochs"}, several: true, jobs: readDL2Workload},
}

// FormatNames lists the formats that Read reads.
func FormatNames() []string {
	var out []string
	for _, t := range Formats() {
		out = append(out, t.Name)
	}
	return out
}

// Formats describes the formats that Read reads.
func Formats() []Format {
	var out []Format
	for _, f := range formatReaders {
		t := f.source
		t.Name, t.Doc = f.name, f.doc
		out = append(out, t)
	}
	return out
}

// guessFormat returns the format of a job trace from its beginning, "" if unknown. Workloads of
// pollux and sia, and of csv and blox, look alike: it returns the first.
func guessFormat(data []byte) string {
	for _, first := range table.Lines(bytes.NewReader(data)) {
		if n := strings.Count(first.Text, "\t") + 1; n == gavelColumns || n == gavelOldColumns {
			return "gavel-trace"
		}
		for _, f := range formatReaders {
			if f.begins != "" && strings.HasPrefix(strings.TrimSpace(first.Text), f.begins) {
				return f.name
			}
		}
		cells, err := table.Split(first.Text)
		if err != nil {
			return ""
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		for _, f := range formatReaders {
			if f.header != nil && containsAll(cells, f.header) {
				return f.name
			}
		}
		return ""
	}
	return ""
}

func containsAll(have, want []string) bool {
	for _, s := range want {
		if !slices.Contains(have, s) {
			return false
		}
	}
	return true
}

func lookupFormat(name string) (*formatReader, error) {
	var names []string
	for i := range formatReaders {
		f := &formatReaders[i]
		if f.name == name {
			return f, nil
		}
		names = append(names, f.name)
	}
	return nil, fmt.Errorf("datasets: unknown workload format %q, want one of: %s",
		name, strings.Join(named.Nearest(name, names, len(names)), ", "))
}
