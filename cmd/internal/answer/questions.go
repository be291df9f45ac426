package answer

// Questions are the questions of a batch. Those that differ in Seq only share a plan.
type Questions struct {
	Plans []Question
	Rows  []PlanAt
}

// PlanAt is one of the Plans for samples of Seq tokens; 0 = the plan's own.
type PlanAt struct{ Plan, Seq int }

// PlanOnly returns q without what differs between questions that are prepared together. Documents are packed into samples
// of one length.
func (q Question) PlanOnly() Question {
	if q.Packed == 0 {
		q.Seq = 0
	}
	return q
}

// ReadQuestions reads a body of POST /v1/predict/batch in the form of most programs: {"questions":[{...},...]} with at
// most that many, every field in QuestionFields, once and in its bounds, texts in printable ASCII without escapes, whole
// numbers in digits. It returns false on any other body, valid or not.
func ReadQuestions(body []byte, most int) (out Questions, ok bool) {
	r := questionReader{text: string(body)}
	at, key := map[string]int{}, []byte(nil)
	ok = r.read(most, func(q *Question, text string) {
		// Questions that differ in other characters, such as blanks, have plans of their own.
		if key = append(key[:0], text...); q.Packed == 0 {
			key = append(key[:r.seq.from], text[r.seq.to:]...)
		}
		i, ok := at[string(key)]
		if !ok {
			i, out.Plans = len(out.Plans), append(out.Plans, q.PlanOnly())
			at[string(key)] = i
		}
		out.Rows = append(out.Rows, PlanAt{i, q.Seq})
	})
	return out, ok
}

// ReadQuestion reads a body of POST /v1/predict that is one of the objects that ReadQuestions reads.
func ReadQuestion(body []byte) (q Question, ok bool) {
	r := questionReader{text: string(body)}
	ok = r.question(&q) && r.end()
	return q, ok
}

// questionReader reads a body of POST /v1/predict or /v1/predict/batch.
type questionReader struct {
	text string
	at   int
	last [32]int                // numbers of the fields of the question before: most have the same order
	seq  struct{ from, to int } // of its number for Seq, in its text
}

var fieldNumbers = func() map[string]int {
	out := map[string]int{}
	for i := range QuestionFields {
		out[QuestionFields[i].Name] = i
	}
	return out
}()

var seqField = fieldNumbers["seq"]

// read calls each with every question and its text.
func (r *questionReader) read(most int, each func(q *Question, text string)) bool {
	if !r.is('{') || r.key() != "questions" || !r.is('[') {
		return false
	}
	for n := 0; ; n++ {
		var q Question
		r.peek()
		start := r.at
		if n == most || !r.question(&q) {
			return false
		}
		each(&q, r.text[start:r.at])
		if r.is(']') {
			return r.is('}') && r.end()
		}
		if !r.is(',') {
			return false
		}
	}
}

// end reports whether nothing is left but blanks.
func (r *questionReader) end() bool { return r.peek() == 0 && r.at == len(r.text) }

// question reads an object.
func (r *questionReader) question(q *Question) bool {
	start := r.at
	if !r.is('{') {
		return false
	}
	r.seq.from, r.seq.to = 0, 0
	seen := 0
	for n := 0; ; n++ {
		key := r.key()
		i, ok := r.last[n], true
		if QuestionFields[i].Name != key {
			i, ok = fieldNumbers[key]
		}
		if !ok || seen&(1<<i) != 0 {
			return false
		}
		r.last[n] = i
		seen |= 1 << i
		f, from := &QuestionFields[i], r.at
		if f.Text != nil && !r.texted(f, f.Text(q)) || f.Text == nil && !r.whole(f, f.Whole(q)) {
			return false
		}
		if i == seqField {
			r.seq.from, r.seq.to = from-start, r.at-start
		}
		if r.is('}') {
			return seen&requiredFields == requiredFields
		}
		if !r.is(',') {
			return false
		}
	}
}

// requiredFields has the bits of required fields.
var requiredFields = func() (set int) {
	for i := range QuestionFields {
		if QuestionFields[i].Required {
			set |= 1 << i
		}
	}
	return set
}()

// peek returns the next byte that is no blank, 0 at the end.
func (r *questionReader) peek() byte {
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; c {
		case ' ', '\n', '\r', '\t':
		default:
			return c
		}
	}
	return 0
}

// is skips c, or reports that it is not next.
func (r *questionReader) is(c byte) bool {
	if r.peek() != c {
		return false
	}
	r.at++
	return true
}

// key reads a name with its colon; "" for another one.
func (r *questionReader) key() string {
	from, to := r.quoted()
	if from < 0 || !r.is(':') {
		return ""
	}
	return r.text[from:to]
}

// quoted returns where the text of a string is; from is below 0 for one with other characters than plain ASCII.
func (r *questionReader) quoted() (from, to int) {
	if !r.is('"') {
		return -1, 0
	}
	from = r.at
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case c == '"':
			r.at++
			return from, r.at - 1
		case c < ' ' || c > '~' || c == '\\':
			return -1, 0
		}
	}
	return -1, 0
}

func (r *questionReader) texted(f *QuestionField, to *string) bool {
	from, end := r.quoted()
	if from < 0 || end-from < f.Least || end-from > f.Most {
		return false
	}
	*to = r.text[from:end]
	return true
}

// maxDigits bounds the digits of whole numbers.
const maxDigits = 9

func (r *questionReader) whole(f *QuestionField, to *int) bool {
	if c := r.peek(); c < '1' || c > '9' {
		return false
	}
	n, from := 0, r.at
	for ; r.at < len(r.text) && r.at-from <= maxDigits && '0' <= r.text[r.at] && r.text[r.at] <= '9'; r.at++ {
		n = 10*n + int(r.text[r.at]-'0')
	}
	*to = n
	c := r.peek()
	return (c == ',' || c == '}') && f.Least <= n && n <= f.Most
}
