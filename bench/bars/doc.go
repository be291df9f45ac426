// Command bars draws the results of an experiment as bars with intervals. It reads
// CSV rows NAME,VALUE,HALFWIDTH,NOTE and writes SVG. HALFWIDTH, half of the interval,
// and NOTE may be empty:
//
//	go run ./bench/bars TITLE UNIT <ROWS.csv >PICTURE.svg
package main
