package nn

import "golang.org/x/sys/cpu"

var haveKernel = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// kernel sets a tile of c, with rows stride apart, to the product of k columns
// of tileRows values with k rows of tileCols values.
//
//go:noescape
func kernel(k int, a, b, c *float32, stride int)
