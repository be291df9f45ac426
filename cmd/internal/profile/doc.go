// Package profile is the command pacer profile: campaigns planned, run, explained and scored.
//
// Start with command.go (the flags of all subcommands), then run.go. What a campaign needs to
// run is in cmd/internal/campaign.
package profile
