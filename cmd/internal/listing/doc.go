// Package listing has the tables of pacer ls: known models, accelerators, policies, stored
// measurements and so on. It also prints fitted models.
//
// Start with listing.go: All has every table. cards.go has the output of pacer fit.
package listing
