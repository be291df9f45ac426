// Command bars draws what an experiment measured, a line each, as bars with their
// intervals. It reads NAME,VALUE,HALFWIDTH,NOTE in CSV, half the width of the
// interval and the note possibly empty, and writes SVG:
//
//	go run ./bench/bars TITLE UNIT <ROWS.csv >PICTURE.svg
package main
