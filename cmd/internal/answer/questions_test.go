package answer

import (
	"fmt"
	"strings"
	"testing"
)

// A question with a field twice is not read here: package json takes the last one, the checks of the schema may refuse it.
func TestQuestionsTwice(t *testing.T) {
	for i := range QuestionFields {
		f := &QuestionFields[i]
		value := fmt.Sprint(f.Least)
		if f.Text != nil {
			value = `"dp=8"`
		}
		field := fmt.Sprintf(`"%s":%s`, f.Name, value)
		others := ""
		for _, other := range QuestionFields {
			if other.Required && other.Name != f.Name {
				others += fmt.Sprintf(`,"%s":"dp=8"`, other.Name)
			}
		}
		for body, want := range map[string]bool{
			`{"questions":[{` + field + others + `}]}`:                                           true,
			`{"questions":[{` + field + others + `},{` + field + others + `}]}`:                  true,
			`{"questions":[{` + field + others + "," + field + `}]}`:                             false,
			`{"questions":[{` + field + "," + field + others + `}]}`:                             false,
			`{"questions":[{` + field + others + `},{` + field + others + "," + field + `}]}`:    false,
			`{"questions":[{` + field + others + "," + field + `},{` + field + others + `}]}`:    false,
			`{"questions":[{` + field + others + "," + field + "," + field + "," + field + `}]}`: false,
		} {
			if _, got := ReadQuestions([]byte(body), 2); got != want {
				t.Errorf("%s is read: %v, want %v", body, got, want)
			}
		}
	}
}

// TestQuestionsPlans: every question has its plan, and questions that differ in Seq only share one, wherever it stands.
func TestQuestionsPlans(t *testing.T) {
	for _, c := range []struct {
		questions []string
		plans     int
	}{
		{[]string{`{"model":"m","accelerator":"a","plan":"dp=8","seq":512}`, `{"model":"m","accelerator":"a","plan":"dp=8","seq":1024}`}, 1},
		{[]string{`{"seq":512,"model":"m","accelerator":"a","plan":"dp=8"}`, `{"seq":1024 ,"model":"m","accelerator":"a","plan":"dp=8"}`}, 1},
		{[]string{`{"model":"m","seq":512,"accelerator":"a","plan":"dp=8"}`, `{"model":"m","seq": 51,"accelerator":"a","plan":"dp=8"}`}, 1},
		{[]string{`{"model":"m","accelerator":"a","plan":"dp=8","seq":5}`, `{"model":"m","accelerator":"a","plan":"dp=16","seq":5}`}, 2},
		{[]string{`{"model":"m","accelerator":"a","plan":"dp=8","seq":5,"devices":12}`, `{"model":"m","accelerator":"a","plan":"dp=8","seq":51,"devices":2}`}, 2},
		{[]string{`{"model":"m","accelerator":"a","plan":"dp=8","packed":64,"seq":512}`, `{"model":"m","accelerator":"a","plan":"dp=8","packed":64,"seq":1024}`, `{"model":"m","accelerator":"a","plan":"dp=8","packed":64,"seq":512}`}, 2},
		{[]string{`{"model":"m","accelerator":"a","plan":"dp=8"}`, `{"model":"m","accelerator":"a","plan":"dp=8"}`, `{"model":"m","accelerator":"b","plan":"dp=8"}`}, 2},
	} {
		qs, ok := ReadQuestions([]byte(`{"questions":[ `+strings.Join(c.questions, " , ")+`]}`), 9)
		if !ok || len(qs.Rows) != len(c.questions) || len(qs.Plans) != c.plans {
			t.Errorf("%q: %v, %d rows and %d plans, want %d plans", c.questions, ok, len(qs.Rows), len(qs.Plans), c.plans)
			continue
		}
		for i, row := range qs.Rows {
			q, ok := ReadQuestion([]byte(c.questions[i]))
			if !ok || row.Seq != q.Seq || qs.Plans[row.Plan] != q.PlanOnly() {
				t.Errorf("%s: %+v of plan %+v, want %+v", c.questions[i], row, qs.Plans[row.Plan], q)
			}
		}
	}
}
