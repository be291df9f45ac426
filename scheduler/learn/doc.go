// Package learn trains policy dl2: a network first imitates the decisions of another policy, then learns from rewards
// for its own (Peng et al., DL2: A Deep Learning-Driven Scheduler for Deep Learning Clusters, IEEE TPDS 32(8), 2021).
//
// Training runs in package sim, so the result is an ordinary policy. Read trainer.go, supervised.go and actorcritic.go
// first; episode.go records decisions and their rewards.
//
// Equal options give equal networks for any number of cores: every episode has its own random streams, and results are
// merged in order.
package learn
