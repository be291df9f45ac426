// Package listing has the tables of pacer ls: known models, accelerators, policies, stored
// measurements and so on. It also prints fitted models.
//
// Start with listing.go: All has every table. fitted.go prints what pacer fit has fitted.
package listing
