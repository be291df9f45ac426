// Package stack holds what training stacks do that no execution plan says: which attention kernel they run, how
// they launch kernels, in which format they reduce gradients, what they overlap. Step times and memory depend on
// it.
//
// A stack is a name with releases, each with a date and a set of [Parts]. A text states a stack:
//
//	Megatron Core@0.13                    a release, by version
//	Megatron-LM@2021                      the release that was current at a date
//	Megatron-LM@..2024-07                 an unknown release, not later than a date
//	DeepSpeed                             an unknown release
//	                                      (empty) an unknown stack
//	FSDP launch=eager attention=flash     a stack with other parts
//
// What a text leaves open is a set of weighted [Choices]: how likely each release is on a generation of devices.
//
// Start with parts.go (parts and their values), table.go (stacks and their releases) and choices.go (what a text
// leaves open).
package stack
