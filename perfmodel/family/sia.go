package family

import (
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/lbfgsb"
)

func init() {
	register(perfmodel.Family{
		Name: "sia",
		Doc:  "Pollux's model for each type of accelerator, bootstrapped across types by FitSia, as published (Jayaram Subramanya et al., Sia, SOSP 2023)",
		Fit:  sia.fit,
		Load: sia.load,
	})
}

// sia is Pollux's model as Sia fits it: with a looser stop.
var sia = polluxFamily{name: "sia", stop: lbfgsb.Settings{RelDecrease: 1e-5, Gradient: 1e-5}}
