// Package nn is what small neural networks need that choose actions: layers with
// rectified linear units, their gradients, a softmax over the actions that are
// allowed, Adam, and files that keep trained networks.
//
// Numbers are float32, matrices are stored by rows. Nothing is random but the first
// weights, which follow from a stream given; the same machine gives the same bits,
// whatever the number of its cores. Machines with fused multiply-add
// round differently from those without.
//
// Read mlp.go first, then softmax.go; gemm.go is where the time goes.
//
// References:
//
//   - K. He et al., Delving Deep into Rectifiers, ICCV 2015: the first weights.
//   - D. P. Kingma, J. Ba, Adam: A Method for Stochastic Optimization, ICLR 2015.
//   - K. Goto, R. van de Geijn, Anatomy of High-Performance Matrix Multiplication,
//     ACM TOMS 34(3), 2008: panels and the kernel.
package nn
