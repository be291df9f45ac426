// Command compare runs a list of commands with two binaries of pacer and prints
// every difference between their outputs.
//
//	make compare OLD=COMMIT                              # builds both
//	go run ./bench/compare -old OLD -new bin/pacer       # builds nothing
//	go run ./bench/compare -old OLD -new bin/pacer -run '^simulate' -max 0
//	go run ./bench/compare -list
//
// commands.txt has the commands, inputs/ their input files. Groups marked shared
// read the public data sets of PACER_SHARED. The commands use the names of the old
// binary; renames.txt maps them to the new ones and lists expected differences.
// Figures, names and the order of rows must be equal. Texts such as warnings,
// reasons and help are compared by number and place only, tables by their figures,
// standard error by its number of lines. Times and versions are ignored. Outputs of
// the old binary are cached.
//
// The test keeps the outputs of groups marked golden, which read only embedded data,
// in testdata/golden; -rewrite renews them.
//
// Start with list.go (the commands), exec.go (running them) and canon.go (the
// compared values).
package main
