// Package shell follows launch scripts without running a program: which commands a shell script starts with which
// arguments, and which files it writes. Variables, arrays, conditions, loops over lists, functions and scripts within
// scripts are followed, within bounds of time and memory; a command substitution is empty.
//
// Start with script.go (Run and Script). variables.go has the variables, condition.go decides conditions, expansion.go
// expands words.
package shell
