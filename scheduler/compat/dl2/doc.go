// Package dl2 has the rules of the heuristics in DL2's simulator (Peng et al., TPDS
// 2021), pengyanghua/DL2 at commit 2e54920.
//
// Start with policy.go.
package dl2
