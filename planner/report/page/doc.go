// Package page has the parts that all HTML pages of Pacer share: the style sheet, and
// uPlot, which draws charts. A page embeds both and needs no network and no other
// file.
//
// Start with page.go. The directory assets has the embedded files.
package page
