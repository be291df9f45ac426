// Package nn provides the small neural networks of learned policies: layers with rectified linear units, gradients, a
// softmax over the allowed actions, Adam, and files of trained networks.
//
// Numbers are float32, matrices are row major. Only the initial weights are random, and a stream determines them. The
// same machine gives the same bits for any number of cores. Machines with fused multiply-add round differently from
// those without.
//
// Read mlp.go, softmax.go and adam.go first; gemm.go takes most of the time.
//
// References:
//
//   - K. He et al., Delving Deep into Rectifiers, ICCV 2015: initial weights.
//   - D. P. Kingma, J. Ba, Adam: A Method for Stochastic Optimization, ICLR 2015.
//   - K. Goto, R. van de Geijn, Anatomy of High-Performance Matrix Multiplication,
//     ACM TOMS 34(3), 2008: panels and the kernel.
package nn
