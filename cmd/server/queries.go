package server

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
)

func (s *Server) registerQueries(api huma.API, m *router) {
	const tag = "questions"
	register(s, api, m, operation{http.MethodPost, "/v1/predict", "predict", tag, light, "Step time and memory of a plan",
		"As pacer predict, one row. Where memory does not suffice, fits is false and why has the reason.", []int{404, 422}},
		ofBody(s.models.Predict))
	m.ops["POST /v1/predict"].quick = s.quickPrediction
	register(s, api, m, operation{http.MethodPost, "/v1/predict/batch", "predict-batch", tag, search, "Step time and memory of many plans",
		"A row per question, in order: a plan or a problem.", nil},
		func(ctx context.Context, in *body[BatchRequest]) (Batch, error) {
			text, err := s.batch(ctx, time.Now(), len(in.Body.Questions), func(b []byte, i int) ([]byte, error) {
				return s.appendAnswer(ctx, b, &in.Body.Questions[i])
			})
			return Batch{text: text}, err
		})
	m.ops["POST /v1/predict/batch"].quick = s.quickBatch
	register(s, api, m, operation{http.MethodPost, "/v1/plan", "plan", tag, search, "The best plans on given devices",
		"As pacer plan. Where no plan fits, the response is a problem with the nearest plan and a remedy, unless the request has rejected.", []int{404, 422}},
		ofBody(s.models.Plan))
	register(s, api, m, operation{http.MethodPost, "/v1/curve", "curve", tag, search, "Best throughput on every number of devices",
		"As pacer curve. With axes, or several accelerators separated by commas, the response is a surface.", []int{404, 422}},
		ofBody(s.models.Curve))
	register(s, api, m, operation{http.MethodPost, "/v1/recommend", "recommend", tag, search, "How many devices to train on, and their type, with time and cost",
		"As pacer recommend. The accelerators are those of have.", []int{404, 422}},
		ofBody(s.models.Recommend))
	register(s, api, m, operation{http.MethodPost, "/v1/fit-check", "fit-check", tag, search, "Whether a plan fits, its headroom, and changes that make it fit",
		"As pacer fit-check.", []int{404, 422}},
		ofBody(s.models.FitCheck))
	register(s, api, m, operation{http.MethodPost, "/v1/check", "check", tag, search, "Read a launch file: whether it fits, its speed, and what would be better",
		"As pacer check. What neither the file nor the request says is in missing; then there is no plan.", []int{404, 422}},
		ofBody(s.models.Check))
}

// maxQuick is more than the bytes of most predictions.
const maxQuick = 2 << 10

// quickPrediction answers a plain question. Its plan is kept for the questions after it.
func (s *Server) quickPrediction(w http.ResponseWriter, body *bytes.Buffer) *quickAnswer {
	text := body.Bytes()
	kept, seq := s.models.Kept(text)
	var q *answer.Question // nil where the plan is kept
	if kept == nil {
		read, ok := answer.ReadQuestion(text)
		if !ok {
			return nil
		}
		q, seq = &read, read.Seq
	}
	return &quickAnswer{answer: func(ctx context.Context) ([]byte, error) {
		start, plan := time.Now(), kept
		body.Grow(maxQuick)
		if plan != nil {
			if out := plan.AppendDirect(ctx, body.AvailableBuffer(), seq, start); out != nil {
				return out, nil
			}
		}
		patient(w)
		ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
		defer cancel()
		if plan == nil {
			plan = s.models.Keep(ctx, q, text)
		}
		return plan.AppendPrediction(ctx, body.AvailableBuffer(), seq, start)
	}}
}

// quickBatch answers plain questions.
func (s *Server) quickBatch(_ http.ResponseWriter, body *bytes.Buffer) *quickAnswer {
	qs, ok := answer.ReadQuestions(body.Bytes(), maxBatch)
	if !ok {
		return nil
	}
	return &quickAnswer{questionSec * float64(len(qs.Rows)), func(ctx context.Context) ([]byte, error) {
		start := time.Now()
		plans, err := s.prepare(ctx, qs.Plans)
		if err != nil {
			return nil, err
		}
		return s.batch(ctx, start, len(qs.Rows), func(b []byte, i int) ([]byte, error) {
			q := &qs.Rows[i]
			b, err := plans[q.Plan].AppendRow(ctx, append(b, `{"plan":`...), q.Seq)
			return append(b, '}'), err
		})
	}}
}
