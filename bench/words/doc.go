// Command words finds constructions that this project does not write, in documents,
// comments, help, errors and names of the whole tree.
//
//	go run ./bench/words                     # what make lint runs
//	go run ./bench/words ./scheduler/...     # every finding below scheduler
//	go run ./bench/words -counts             # how many findings each directory has
//
// Without arguments, directories in pending.txt may still have findings. A directory
// without findings must not be in it: go run ./bench/words -pending prints the list
// as it should be.
//
// Start with rules.go (what is banned), extract.go (what is read) and main.go.
package main
