package server

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/server/access"
)

// Campaigns is the progress of campaigns that measure into the store of this server.
type Campaigns struct {
	Campaigns []campaign.Progress `json:"campaigns" doc:"The one that said something last first."`
}

// campaigns keeps what campaigns last said, in memory alone: they say it again with the next point.
type campaigns struct {
	mu   sync.Mutex
	runs []campaign.Progress // newest first
}

// maxCampaigns bounds the runs that are kept.
const maxCampaigns = 16

func (c *campaigns) put(p campaign.Progress) campaign.Progress {
	p.Updated = time.Now().UTC().Truncate(time.Second)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs = slices.DeleteFunc(c.runs, func(q campaign.Progress) bool {
		return q.Name == p.Name && q.Label == p.Label && q.Machine == p.Machine
	})
	c.runs = slices.Insert(c.runs, 0, p)
	c.runs = c.runs[:min(len(c.runs), maxCampaigns)]
	return p
}

func (c *campaigns) list() Campaigns {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Campaigns{append([]campaign.Progress{}, c.runs...)}
}

func (s *Server) registerCampaigns(api huma.API, m *router) {
	const tag, path = "measurements", "/v1/campaigns"
	m.scopes["POST "+path] = access.ScopeIngest
	register(s, api, m, operation{http.MethodPost, path, "post-campaign", tag, light, "Say how far a campaign is",
		"pacer profile run does, with every point that it measures into the store of this server.", []int{421}},
		func(_ context.Context, in *body[campaign.Progress]) (campaign.Progress, error) {
			if err := s.mayWrite(); err != nil {
				return campaign.Progress{}, err
			}
			return s.campaigns.put(in.Body), nil
		})
	register(s, api, m, operation{http.MethodGet, path, "campaigns", tag, light, "How far campaigns are",
		"What each run said last, since the server was started; at most 16 runs.", nil},
		func(context.Context, *struct{}) (Campaigns, error) { return s.campaigns.list(), nil })
}
