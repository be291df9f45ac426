package optimus

// Variant replaces rules of Optimus. The zero value replaces none.
type Variant struct {
	// EveryRound lets optimus-oracle decide anew in every round.
	EveryRound bool
	// AnyDevices takes any free devices of a group; else those where a job is
	// predicted to run fastest.
	AnyDevices bool
	// NextOnly compares with one device more, or one replica or server; else with all
	// larger sizes.
	NextOnly bool
	// RawGain compares seconds saved; else seconds saved per dominant share. It is
	// about jobs with parameter servers.
	RawGain bool
}
