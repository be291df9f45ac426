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

	//go:embed assets/plans.css
	plansCSS string
	//go:embed assets/charts.js
	chartsJS string
	//go:embed assets/schedules.js
	schedulesJS string
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

// PlanStyle is the style sheet of a page about plans, with its charts; own overrides it.
func PlanStyle(own string) template.CSS { return Style(plansCSS + "\n" + own) }

// Charts is the module with the charts of plans. A page that is one file has it at the
// beginning of its own module, and Plot in a script before.
var Charts = template.JS(chartsJS)

// PlotModule returns Plot as a module with uPlot as its default export.
func PlotModule() string { return string(Plot) + "\nexport default uPlot;\n" }

// Schedules is the module with the charts of schedules, which comes after Charts in a page that is one file.
var Schedules = template.JS(schedulesJS)

// ScheduleModule returns Schedules as a module beside charts.js, which has Charts.
func ScheduleModule() string {
	return "import {css, axes, element} from \"./charts.js\";\n" + schedulesJS
}
