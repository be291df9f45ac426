package answer

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/query"
)

// Question asks about one plan by names: the fields of a PredictRequest that batches have in every form. A zero field is
// not given. Comparable.
type Question struct {
	Model, Accelerator, Plan, Shape, Node, Framework, Adapter, Date, Precision, Family string
	GlobalBatch, PerNode, Packed, Devices, Seq                                         int
}

// QuestionField is a field of Question, with the name and the bounds of that field of a PredictRequest.
type QuestionField struct {
	Name        string
	Required    bool
	Text        func(*Question) *string // nil for a whole number
	Whole       func(*Question) *int
	Least, Most int // bytes of a text; a whole number
}

// QuestionFields lists the fields of Question.
var QuestionFields = bounded([]QuestionField{
	{Name: "model", Text: func(q *Question) *string { return &q.Model }},
	{Name: "accelerator", Text: func(q *Question) *string { return &q.Accelerator }},
	{Name: "plan", Text: func(q *Question) *string { return &q.Plan }},
	{Name: "shape", Text: func(q *Question) *string { return &q.Shape }},
	{Name: "node", Text: func(q *Question) *string { return &q.Node }},
	{Name: "framework", Text: func(q *Question) *string { return &q.Framework }},
	{Name: "adapter", Text: func(q *Question) *string { return &q.Adapter }},
	{Name: "date", Text: func(q *Question) *string { return &q.Date }},
	{Name: "precision", Text: func(q *Question) *string { return &q.Precision }},
	{Name: "family", Text: func(q *Question) *string { return &q.Family }},
	{Name: "global_batch", Whole: func(q *Question) *int { return &q.GlobalBatch }},
	{Name: "per_node", Whole: func(q *Question) *int { return &q.PerNode }},
	{Name: "packed", Whole: func(q *Question) *int { return &q.Packed }},
	{Name: "devices", Whole: func(q *Question) *int { return &q.Devices }},
	{Name: "seq", Whole: func(q *Question) *int { return &q.Seq }},
})

// bounded adds the bounds that the tags of PredictRequest state. It panics on one without.
func bounded(fields []QuestionField) []QuestionField {
	tags := map[string]reflect.StructTag{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[PredictRequest]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		tags[name] = f.Tag
	}
	for i := range fields {
		f := &fields[i]
		tag := tags[f.Name]
		_, rest, _ := strings.Cut(tag.Get("json"), ",")
		f.Required = rest == ""
		least, most := tag.Get("minimum"), tag.Get("maximum")
		if f.Text != nil {
			least, most = "0"+tag.Get("minLength"), tag.Get("maxLength")
		}
		var err error
		if f.Least, err = strconv.Atoi(least); err == nil {
			f.Most, err = strconv.Atoi(most)
		}
		if err != nil {
			panic(fmt.Sprintf("answer: bounds of %s: %v", f.Name, err))
		}
	}
	return fields
}

// request returns q as a request, without the fields of query.FixedPlan.
func (q Question) request() query.Request {
	return query.Request{Model: q.Model, Accelerator: q.Accelerator, Node: q.Node, Framework: q.Framework, Adapter: q.Adapter, Date: q.Date,
		Precision: q.Precision, Family: q.Family, GlobalBatch: q.GlobalBatch, PerNode: q.PerNode, Packed: q.Packed, Seq: q.Seq}
}

// clone returns q with texts of its own.
func (q Question) clone() Question {
	for i := range QuestionFields {
		if at := QuestionFields[i].Text; at != nil {
			*at(&q) = strings.Clone(*at(&q))
		}
	}
	return q
}
