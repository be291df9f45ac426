// Package admission has the rules that decide which submitted jobs enter the system.
//
// Terms:
//
//   - Jobs in the system are visible to the policy, waiting or running.
//   - A held job has not entered yet. The rule is applied to it again later, in the order
//     of its line.
//   - A rejected job never enters.
//   - A guaranteed job is entitled to the speed of its submitted plan and devices.
//
// Start with admission.go, then load.go and guarantee.go; cohorts.go has quotas like those of Kueue.
package admission
