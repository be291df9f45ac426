package query

import (
	"context"
	"fmt"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store/reader"
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

// FitAll fits the keys of rows that o selects, see perfmodel.FitPool; a model has one name, see OneName. It keeps the
// results in reg, in place of those of the same canonical keys. Keys that cannot be fitted are returned as reasons.
func FitAll(ctx context.Context, fam perfmodel.Family, reg *registry.Registry, rows []spec.Measurement, o perfmodel.PoolOptions) (cards []perfmodel.Card, skipped []string, err error) {
	before, _ := reg.List() // a file that cannot be read stays
	fits, err := perfmodel.FitPool(ctx, fam, OneName(rows), o)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range fits {
		if f.Err != nil {
			skipped = append(skipped, f.Err.Error())
			continue
		}
		if d, ok := f.Fitted.(perfmodel.Doubter); ok && len(d.Outliers()) > 0 {
			f.Card.Warnings = append(f.Card.Warnings, fmt.Sprintf("pacer store quarantine --outliers --model %q --accelerator %q keeps such rows out of the next fit", f.Card.Model, f.Card.Accelerator))
		}
		f.Card.Created = time.Now().UTC().Truncate(time.Second)
		if err := replaceCard(reg, before, f.Card, f.Fitted); err != nil {
			return nil, nil, err
		}
		cards = append(cards, f.Card)
	}
	return cards, skipped, nil
}

// WithPool limits o to the keys of rows and returns the rows that take part in their fit: those of all models and
// accelerators of the sources, all sources if there are none, if fam fits several keys at once; else rows.
func WithPool(fam perfmodel.Family, rows []spec.Measurement, sources []string, o *perfmodel.PoolOptions, read func(reader.Filter) ([]spec.Measurement, error)) ([]spec.Measurement, error) {
	if fam.Condition == nil || o.Alone {
		return rows, nil
	}
	keys := map[spec.Key]bool{}
	for i := range rows {
		keys[CanonicalKey(rows[i].Config.Key())] = true
	}
	o.Keys = func(k spec.Key) bool { return keys[CanonicalKey(k)] }
	return read(reader.Filter{Sources: sources})
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
