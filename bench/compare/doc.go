// Command compare runs a list of commands with two binaries of pacer and prints
// every difference between their outputs.
//
//	make compare OLD=COMMIT                              # builds both
//	go run ./bench/compare -old OLD -new bin/pacer       # builds nothing
//	go run ./bench/compare -old OLD -new bin/pacer -run '^simulate' -max 0
//	go run ./bench/compare -list
//
// Commands are in commands.txt, what they read in inputs/. Groups marked shared
// read the public data sets of PACER_SHARED. The commands use the words of the
// old binary; renames.txt says what the new one calls them, and which differences
// are wanted. Figures, names and the order of rows must be equal. Of texts such as
// warnings, reasons and help only their number and place count; of tables only
// their figures; of standard error only the number of lines. Times and versions do
// not count. Outputs of the old binary are kept in a cache.
//
// The test keeps the outputs of groups marked golden, which read embedded data
// alone, in testdata/golden: -rewrite renews them.
//
// Start with list.go (what is run), exec.go (how) and canon.go (what counts).
package main
