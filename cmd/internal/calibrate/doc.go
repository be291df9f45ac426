// Package calibrate is pacer calibrate: it measures a few plans on a budget, fits a performance model to
// them, and scores predictions before and after the fit on plans that the fit did not see.
//
// Some of the plans are drawn at random and held out. The others are chosen by the expected gain of
// measuring them. Only these are fitted for the score. The fit that is stored uses both.
//
// Start with calibrate.go (a calibration on this machine), score.go (predictions before and after) and
// launch.go (plans that others run, and the rows they bring back). space.go proposes plans.
package calibrate
