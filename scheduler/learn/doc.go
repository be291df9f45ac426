// Package learn trains policy dl2: a network first imitates the decisions that
// another policy makes, then is rewarded for its own (Peng et al., DL2: A Deep
// Learning-Driven Scheduler for Deep Learning Clusters, IEEE TPDS 32(8), 2021).
//
// It learns in the simulator that everything else is simulated in, so that what
// comes out is an ordinary policy. Read trainer.go first, then supervised.go and
// actorcritic.go; episode.go says what is recorded of a run.
//
// Equal options give equal networks, whatever the number of cores: every episode
// has random numbers of its own, and what several give is put together in order.
package learn
