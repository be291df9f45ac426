// Package listing has the tables of pacer ls: known models, accelerators, policies, stored
// measurements and so on.
//
// Start with listing.go: All has every table.
package listing
