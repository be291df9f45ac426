// Package shell follows launch scripts without running a program: which commands a shell script starts with which
// arguments, and which files it writes. Variables, arrays, conditions, loops, functions, substitutions of commands that
// only handle text, and scripts within scripts are followed, within bounds of time and memory. Other programs print nothing.
//
// Start with script.go (Run and Script). started.go has the scripts that a script starts, and files.go the files that it
// writes. assign.go and variables.go have the variables, flow.go loops and functions, condition.go decides conditions,
// expansion.go expands words, and builtins.go has the commands that are followed. arguments.go reads the words of a command
// as options, edit.go changes an option in the text of a script.
package shell
