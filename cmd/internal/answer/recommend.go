package answer

import (
	"context"

	"github.com/pacer-ml/pacer/cmd/internal/query"
)

// RecommendRequest asks how many devices, and of what type, to train on.
type RecommendRequest struct {
	query.RecommendRequest
	Described
	Accelerator string `json:"accelerator,omitempty" maxLength:"256" doc:"Not used: the types are those of have."`
}

// Recommend answers like pacer recommend.
func (c *Answerer) Recommend(ctx context.Context, in *RecommendRequest) (query.Recommendation, error) {
	in.Into(&in.Request)
	out, err := query.Recommend(ctx, func(ctx context.Context, q query.Request) (query.Resolved, error) {
		r, _, err := c.Resolve(ctx, &q)
		return r, err
	}, in.RecommendRequest)
	if err != nil {
		return query.Recommendation{}, err
	}
	return *out, nil
}
