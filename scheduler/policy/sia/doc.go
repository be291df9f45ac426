// Package sia holds Sia (Jayaram Subramanya et al., SOSP 2023): one integer program
// gives each job a number of devices of one type.
//
// Start with sia.go, choose.go and place.go.
package sia
