// Command pacer tells how fast a training job will run, on what, split how.
//
// One file per verb holds its flags and wiring; the work is done by the
// packages below. Start with app.go (the commands and what they share), then
// simulate.go (the longest road through the packages).
package main
