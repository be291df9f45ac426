package optimus

// Variant replaces rules of Optimus. The zero value replaces none.
type Variant struct {
	// EveryRound makes optimus-oracle decide in every round.
	EveryRound bool
	// AnyDevices takes any free devices of a group, instead of those where a job is
	// predicted to run fastest.
	AnyDevices bool
	// NextOnly considers only one more device, replica or server, instead of all larger
	// sizes.
	NextOnly bool
	// RawGain compares seconds saved, instead of seconds saved per dominant share. It is
	// for jobs with parameter servers.
	RawGain bool
}
