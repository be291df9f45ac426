// Command renew puts a text into a document, between its lines <!-- NAME --> and
// <!-- /NAME -->, in place of what is there. The experiments of bench/experiments
// write docs/results.md with it:
//
//	go run ./bench/renew FILE NAME <TEXT
package main
