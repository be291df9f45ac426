package query

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Fits is the JSON of pacer fit.
type Fits struct {
	Cards  []perfmodel.Card `json:"cards"`
	Pooled Pooled           `json:"pooled"`
}

// Pooled is the error over the rows of all cards, as a fraction of the measured
// step time.
type Pooled struct {
	NFit     int     `json:"n_fit"`
	NHeldOut int     `json:"n_held_out"`
	MAPE     float64 `json:"mape"`
	NAll     int     `json:"n_all"`
	MAPEAll  float64 `json:"mape_all"`
}

// Pool weights the errors of cards by their rows.
func Pool(cards []perfmodel.Card) Pooled {
	var p Pooled
	for _, k := range cards {
		p.NFit += k.NFit
		p.NHeldOut += k.NHeldOut
		p.NAll += k.NAll
		p.MAPE += k.MAPE * float64(k.NHeldOut)
		p.MAPEAll += k.MAPEAll * float64(k.NAll)
	}
	p.MAPE /= float64(max(p.NHeldOut, 1))
	p.MAPEAll /= float64(max(p.NAll, 1))
	return p
}

// FitAll fits every key of rows, in order; a model has one name, see OneName. It keeps the results in reg,
// in place of those of the same canonical keys. Keys that cannot be fitted are returned as reasons. done,
// unless nil, is called after each key with the number of finished keys and of all.
func FitAll(ctx context.Context, fam perfmodel.Family, reg *registry.Registry, rows []spec.Measurement, o perfmodel.FitOptions, done func(n, total int)) (cards []perfmodel.Card, skipped []string, err error) {
	byKey := perfmodel.GroupByKey(OneName(rows))
	before, _ := reg.List() // a file that cannot be read stays
	keys := slices.SortedFunc(maps.Keys(byKey), perfmodel.CompareKeys)
	for i, k := range keys {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		fitted, card, err := perfmodel.FitKey(ctx, fam, byKey[k], o)
		if done != nil {
			done(i+1, len(keys))
		}
		if err != nil {
			skipped = append(skipped, err.Error())
			continue
		}
		if d, ok := fitted.(perfmodel.Doubter); ok && len(d.Outliers()) > 0 {
			card.Warnings = append(card.Warnings, fmt.Sprintf("pacer store quarantine --outliers --model %q --accelerator %q keeps such rows out of the next fit", k.Model, k.Accelerator))
		}
		card.Created = time.Now().UTC().Truncate(time.Second)
		if err := replaceCard(reg, before, card, fitted); err != nil {
			return nil, nil, err
		}
		cards = append(cards, card)
	}
	return cards, skipped, nil
}

// replaceCard stores a fitted model and removes those of other names of its key.
func replaceCard(reg *registry.Registry, before []perfmodel.Card, card perfmodel.Card, fitted perfmodel.Fitted) error {
	if err := reg.Put(card, fitted); err != nil {
		return err
	}
	for _, old := range before {
		if old.Family == card.Family && old.Key != card.Key && CanonicalKey(old.Key) == CanonicalKey(card.Key) {
			if err := reg.Remove(old.Key, old.Family); err != nil {
				return err
			}
		}
	}
	return nil
}
