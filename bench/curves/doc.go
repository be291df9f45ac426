// Command curves draws learning curves. It reads what "pacer bench accuracy --learning-curve --output csv" prints, and
// writes an SVG picture of the mean error over all sources of each directory:
//
//	go run ./bench/curves <CURVES.csv >PICTURE.svg
package main
