// Package policy describes scheduling policies: Info is one, Registry a table of
// them, Deps what a policy is made of, Option a setting of one.
//
// The policies are in the packages below this one, by family, and the table of
// those that come with Pacer is in builtin. docs/guides/add-a-policy.md shows how to add one.
//
// Start with registry.go, order/las.go and builtin/builtin.go.
package policy
