// Package pollux has the parts in which the simulator of Pollux (Qiao et al., OSDI
// 2021; petuum/adaptdl at commit c793c70) differs from Pacer.
//
// Start with pollux.go.
package pollux
