package family

// Shipped returns the prior that comes with the program.
func Shipped() *Prior { return shipped }

var shipped = untrained()
