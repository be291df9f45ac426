// Package page is what every page of charts that Pacer writes is made of: the
// style sheet, and uPlot, which draws the charts. A page embeds both, so that it
// needs no network and no other file.
//
// Start with page.go; assets holds what is embedded.
package page
