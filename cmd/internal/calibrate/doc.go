// Package calibrate is pacer calibrate: it measures a few plans on a budget, fits a performance model to
// them, and scores predictions before and after the fit on plans that the fit did not see.
//
// Some of the plans are drawn at random and held out. The others are chosen by the expected gain of
// measuring them. Only these are fitted for the score. The fit that is stored uses both.
//
// Start with command.go and open.go (Run and what is calibrated), calibrate.go (measuring on this machine)
// and score.go (predictions before and after). launch.go writes plans that others run, and rows.go reads their
// results. Package nextplans proposes and chooses plans.
package calibrate
