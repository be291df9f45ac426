// Package blox has the parts in which the simulator of Blox (Agarwal et al., EuroSys
// 2024; msr-fiddle/blox at commit c8851b2) differs from Pacer. Other simulators with
// fixed rounds share some of them.
//
// Start with engine.go (how rounds see time) and placer.go (how nodes are filled).
package blox
