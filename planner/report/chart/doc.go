// Package chart writes SVG pictures of figures: lines, intervals and bars on linear or
// logarithmic axes. A picture needs no network and no other file, and follows the
// reader's colour scheme. The pages of charts of package page are drawn by the browser
// instead.
//
// Start with picture.go (elements of a picture) and axis.go (where values are on it).
package chart
