package pollux

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/lbfgsb"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// SiaFamily is the family "sia". Sia projects the goodput of an accelerator type without rows of several
// devices from another type, and has pipelines of fixed depth (sections 3.3 and 3.4). Neither is covered: each
// type is fitted to rows of its own.
var SiaFamily = perfmodel.Family{
	Name: "sia",
	Doc:  "Pollux's model as Sia fits it for each type of accelerator, with a looser stopping rule (Jayaram Subramanya et al., Sia, SOSP 2023)",
	Fit:  fitSia,
	Load: loadSia,
}

// siaFitter fits Pollux's model as Sia does, with a looser stopping rule. This matters: before convergence, the
// parameters predict other times for configurations that were not measured. Source: siasosp23/artifacts@aaf7a0d.
var siaFitter = fitter{name: "sia", stop: lbfgsb.Settings{RelDecrease: 1e-5, Gradient: 1e-5}}

// siaModel is the fitted model of one key.
type siaModel struct{ model *Model }

// siaRecord is the stored form of a siaModel.
type siaRecord struct {
	Types []*Model `json:"types"` // one
}

func fitSia(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (perfmodel.Fitted, perfmodel.Card, error) {
	m, card, err := siaFitter.fitKey(ctx, data)
	if err != nil {
		return nil, perfmodel.Card{}, err
	}
	return siaModel{m}, card, nil
}

// Predict implements perfmodel.Predictor, as Model.Predict.
func (m siaModel) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	return m.model.Predict(ctx, c)
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (m siaModel) MarshalBinary() ([]byte, error) {
	return json.Marshal(siaRecord{Types: []*Model{m.model}})
}

// loadSia reads what MarshalBinary wrote.
func loadSia(b []byte) (perfmodel.Fitted, error) {
	var r siaRecord
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("sia: reading a fitted model: %w", err)
	}
	if len(r.Types) != 1 || r.Types[0] == nil {
		return nil, fmt.Errorf("sia: fitted model of %d types of accelerator, want one that is not null", len(r.Types))
	}
	if err := r.Types[0].restore(siaFitter); err != nil {
		return nil, err
	}
	return siaModel{r.Types[0]}, nil
}
