package page

import (
	_ "embed" // style sheets and scripts
	"html/template"
)

// uPlot 1.6.32 is by Leon Sorokin, https://github.com/leeoniya/uPlot, under the
// MIT licence.
var (
	//go:embed assets/base.css
	baseCSS string
	//go:embed assets/uPlot.min.css
	plotCSS string
	//go:embed assets/uPlot.iife.min.js
	plotJS string
	//go:embed assets/uPlot.LICENSE
	plotLicence string
)

// Plot is the script of uPlot with its licence, which every copy must contain.
var Plot = template.JS("/*!\n" + plotLicence + "\n*/\n" + plotJS)

// Colors is the number of colours c1, c2, ... the style sheet has for lines and
// swatches.
const Colors = 8

// Style returns the style sheet of a page: uPlot's, the common one, and own, which
// overrides both.
func Style(own string) template.CSS {
	return template.CSS(plotCSS + "\n" + baseCSS + "\n" + own)
}
