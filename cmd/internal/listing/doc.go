// Package listing is the command pacer ls: known models, accelerators, policies, stored
// measurements and so on. It also prints fitted models.
//
// Start with listing.go: all has every table. cards.go has the output of pacer fit.
package listing
