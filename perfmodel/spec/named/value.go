package named

import (
	"fmt"
	"strconv"
)

// Parse reads the value of a setting into to, a pointer to a number, a bool or a string. The
// error quotes text and says what it should be.
func Parse(text string, to any) (err error) {
	var want string
	switch to := to.(type) {
	case *int:
		want = "a whole number"
		*to, err = strconv.Atoi(text)
	case *float64:
		want = "a number"
		*to, err = strconv.ParseFloat(text, 64)
	case *bool:
		want = "true or false"
		*to, err = strconv.ParseBool(text)
	case *string:
		*to = text
	default:
		panic(fmt.Sprintf("named: no setting is a %T", to))
	}
	if err != nil {
		return fmt.Errorf("%q is not %s", text, want)
	}
	return nil
}
