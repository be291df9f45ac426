package answer

import (
	"fmt"
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
