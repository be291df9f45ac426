// Package page has the parts that all HTML pages of Pacer share: the style sheets, uPlot,
// which draws charts, and the charts of plans. Reports embed them and need no network and
// no other file; pacer serve serves them.
//
// Start with page.go. The directory assets has the embedded files.
package page
