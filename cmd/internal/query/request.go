package query

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Request has the fields that every request of plans shares, named as in
// docs/reference/contract.md. A zero field is not given. Comparable.
type Request struct {
	Model           string  `json:"model" minLength:"1" maxLength:"256" example:"llama3-8b" doc:"Model to train, by a name of the catalog or of the stored measurements."`
	Accelerator     string  `json:"accelerator" minLength:"1" maxLength:"256" example:"h100" doc:"Type of device, by a name of the catalog or of the stored measurements."`
	GlobalBatch     int     `json:"global_batch,omitempty" minimum:"1" maximum:"16777216" example:"128" doc:"Samples per optimizer step; that of the plan if absent."`
	Seq             int     `json:"seq,omitempty" minimum:"1" maximum:"16777216" doc:"Tokens per sample; the model's own if absent."`
	PerNode         int     `json:"per_node,omitempty" minimum:"1" maximum:"1048576" doc:"Devices per node; those of the accelerator's usual node if absent."`
	Node            string  `json:"node,omitempty" maxLength:"256" doc:"Node type; the accelerator's usual one if absent."`
	Framework       string  `json:"framework,omitempty" maxLength:"256" example:"Megatron Core@0.13" doc:"Training stack, by a name of pacer ls stacks or of the stored measurements, with a version or date after @ if known. If absent, that of the measurements, else any stack plausible for the device and date."`
	Adapter         string  `json:"adapter,omitempty" maxLength:"64" example:"lora:16" doc:"Adapter that is trained in place of the weights: lora, qlora or dora with a rank and, if not qkv+o, modules, such as qlora:64:qkv+o+mlp."`
	Packed          int     `json:"packed,omitempty" minimum:"1" maximum:"16777216" example:"512" doc:"Mean length in tokens of the documents that are packed into a sample, which attend to themselves only; if absent, a sample is one document. Padding is not modelled."`
	Imbalance       float64 `json:"imbalance,omitempty" minimum:"1" maximum:"1048576" example:"1.2" doc:"Tokens that the experts of the busiest device of an expert parallel group receive, over the mean of the group; 1, the default, is even. Needs a model with routed experts."`
	Date            string  `json:"date,omitempty" maxLength:"10" example:"2024-07" doc:"Latest date of the training stack, YYYY, YYYY-MM or YYYY-MM-DD, where framework states no release."`
	Precision       string  `json:"precision,omitempty" maxLength:"32" example:"bf16" doc:"Number format of multiplications."`
	Family          string  `json:"family,omitempty" maxLength:"64" doc:"Family of performance models; auto, the default, is a fitted model that beats the analytic one on held-out rows, else the analytic one."`
	InterNodeGbps   float64 `json:"inter_node_gbps,omitempty" exclusiveMinimum:"0" maximum:"1000000000" doc:"Network of one node in Gbit/s, one direction, all NICs."`
	IntraNodeGBytes float64 `json:"intra_node_gbytes,omitempty" exclusiveMinimum:"0" maximum:"1000000000" doc:"Link between the devices of a node in GByte/s per device, one direction."`

	// Stack has the parts of the training stack that differ from framework, PART=VALUE, separated by spaces.
	Stack string `json:"-"`

	// Network, if set, is the model itself and replaces Model. No fitted model and
	// no measurement applies to it.
	Network spec.Model `json:"-"`

	// Chip, if set, is the device type itself and replaces Accelerator. No fitted model and no measurement
	// applies to it.
	Chip Chip `json:"-"`
}

// custom reports whether q describes its own model.
func (q *Request) custom() bool { return q.Network != spec.Model{} }

// unmeasured reports whether q describes its own model or device type, to which no measurement applies.
func (q *Request) unmeasured() bool { return q.custom() || q.Chip != (Chip{}) }

// Bounds of requests.
const (
	MaxBatch     = 1 << 24 // samples per step
	MaxSeq       = 1 << 24 // tokens per sample
	MaxDevices   = 1 << 20
	maxImbalance = 1 << 20
	maxRate      = 1e9 // Gbit/s or GByte/s
)

// FieldError is an error of one field of a request.
type FieldError struct {
	Field string // as in the JSON of Request, such as global_batch
	Value any
	Why   string // follows the value: "is not in 1..8", ", but ...", ": ..."; other fields are in braces
	// NoAnswer marks a valid request without an answer.
	NoAnswer bool
	// Err, if set, is the whole text of Error; other fields are in braces.
	Err error
}

func (e *FieldError) Error() string { return e.Named(func(field string) string { return field }) }

// otherField matches a field in the text of a FieldError.
var otherField = regexp.MustCompile(`\{[a-z_]+\}`)

// Named is Error with fields called by other names.
func (e *FieldError) Named(name func(field string) string) string {
	rename := func(text string) string {
		return otherField.ReplaceAllStringFunc(text, func(field string) string { return name(strings.Trim(field, "{}")) })
	}
	if e.Err != nil {
		return rename(e.Err.Error())
	}
	subject := name(e.Field)
	if e.Value != "" {
		subject += " " + valueText(e.Value)
	}
	if strings.HasPrefix(e.Why, ",") || strings.HasPrefix(e.Why, ":") {
		return subject + rename(e.Why)
	}
	return subject + " " + rename(e.Why)
}

// valueText writes a value, text in quotes.
func valueText(v any) string {
	if r := reflect.ValueOf(v); r.Kind() == reflect.String {
		return strconv.Quote(r.String())
	}
	return fmt.Sprint(v)
}

func (e *FieldError) Unwrap() error { return e.Err }

// missing is the error of an absent field.
func missing(field string) error { return &FieldError{Field: field, Value: "", Why: "is missing"} }

// InRange returns a *FieldError unless 1 <= n <= most.
func InRange(field string, n, most int) error {
	if n < 1 || n > most {
		return &FieldError{Field: field, Value: n, Why: fmt.Sprintf("is not in 1..%d", most)}
	}
	return nil
}

// ReadFile returns the content of the file that a field names; *FieldError if it has more than
// most bytes.
func ReadFile(field, path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = &FieldError{Field: field, Value: path, Err: fmt.Errorf("%s is larger than %d KiB", path, most>>10)}
	}
	return text, err
}

// rate returns a *FieldError unless v is 0 or a rate.
func rate(field string, v float64) error {
	if v != 0 && !(v > 0 && v < maxRate) {
		return &FieldError{Field: field, Value: v, Why: "is not positive"}
	}
	return nil
}

// Check returns a *FieldError for the first field that is missing or out of range.
// It looks no names up.
func (q *Request) Check() error {
	switch {
	case q.Model == "" && !q.custom():
		return missing("model")
	case q.Accelerator == "" && q.Chip == (Chip{}):
		return missing("accelerator")
	}
	for _, f := range [...]struct {
		name    string
		n, most int
	}{{"global_batch", q.GlobalBatch, MaxBatch}, {"seq", q.Seq, MaxSeq}, {"packed", q.Packed, MaxSeq}, {"per_node", q.PerNode, MaxDevices}} {
		if f.n == 0 {
			continue
		}
		if err := InRange(f.name, f.n, f.most); err != nil {
			return err
		}
	}
	if q.custom() {
		if err := q.Network.Validate(); err != nil {
			return &FieldError{Field: "model", Value: q.Network.Name, Err: err}
		}
	}
	if x := q.Imbalance; x != 0 && !(x >= 1 && x <= maxImbalance) {
		return &FieldError{Field: "imbalance", Value: x, Why: fmt.Sprintf("is not in 1..%d; 1 is even", maxImbalance)}
	}
	if _, err := spec.ParseAdapter(q.Adapter); err != nil {
		return &FieldError{Field: "adapter", Value: q.Adapter, Why: strings.TrimPrefix(err.Error(), fmt.Sprintf("spec: adapter %q", q.Adapter))}
	}
	if err := q.checkStack(); err != nil {
		return err
	}
	if q.Chip != (Chip{}) {
		if err := q.Chip.Check(); err != nil {
			return err
		}
	}
	_, err := q.Interconnect()
	return err
}

// Interconnect returns the figures of the interconnect that q gives. It returns a *FieldError
// for one that is no rate.
func (q *Request) Interconnect() (Link, error) {
	err := rate("inter_node_gbps", q.InterNodeGbps)
	if err == nil {
		err = rate("intra_node_gbytes", q.IntraNodeGBytes)
	}
	return Link{InterBps: q.InterNodeGbps * 1e9 / 8, IntraBps: q.IntraNodeGBytes * 1e9}, err
}

// Link replaces figures of an interconnect, in bytes/s; 0 = not given.
type Link struct{ InterBps, IntraBps float64 }

// Apply replaces the figures of to that were given.
func (l Link) Apply(to *spec.Link) {
	if l.InterBps > 0 {
		to.InterBps = l.InterBps
	}
	if l.IntraBps > 0 {
		to.IntraBps = l.IntraBps
	}
}

// PlannerRequest builds the planner's request of q, which passes Check, about s.
// The caller adds devices, shape and plan.
func (q *Request) PlannerRequest(t *Target) (planner.Request, error) {
	r := planner.Request{
		Model: t.model, SeqLen: t.seqLen, Accelerator: t.accelerator, Link: t.link, Framework: t.framework,
		Precision: t.precision, PerNode: t.node.Devices, NodeHostBytes: t.node.HostBytes, GlobalBatch: q.GlobalBatch,
	}
	if q.Seq > 0 {
		r.SeqLen = q.Seq
	}
	if seq := cmp.Or(r.SeqLen, r.Model.SeqLen); q.Packed > seq && seq > 0 {
		return r, &FieldError{Field: "packed", Value: q.Packed, Why: fmt.Sprintf("is more than the %d tokens of a sample", seq)}
	}
	if q.PerNode > 0 {
		share := float64(q.PerNode) / float64(max(t.node.Devices, 1)) // of a machine like the usual one
		r.PerNode = q.PerNode
		r.NodeHostBytes *= share
		r.Link.InterBps *= share
	}
	link, err := q.Interconnect()
	if err != nil {
		return r, err
	}
	link.Apply(&r.Link)
	if p := spec.Precision(q.Precision); p != "" {
		if err := CheckPrecision(p, t.accelerator); err != nil {
			return r, err
		}
		r.Precision = p
	}
	return r, nil
}

// CheckPrecision reports a format that is unknown, or that a does not support.
func CheckPrecision(p spec.Precision, a spec.Accelerator) error {
	if !slices.Contains(spec.Precisions(), p) {
		return &FieldError{Field: "precision", Value: p, Err: fmt.Errorf("precision %q is not one of %v", p, spec.Precisions())}
	}
	if has := a.Formats(); len(has) > 0 && !slices.Contains(has, p.Format()) {
		return &FieldError{Field: "precision", Value: p, NoAnswer: true, Err: fmt.Errorf("%s does not multiply in %s; it has %v", a.Name, p, has)}
	}
	return nil
}
