package spec

import "strconv"

// Count writes a number of things in English: "1 device", "2 devices".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
