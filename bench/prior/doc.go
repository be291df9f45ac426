// Command prior trains the priors of families "analytic" and "hybrid", which predict
// jobs without measurements, on public measurements, and writes their prior.json:
//
//	go run ./bench/prior DIR perfmodel/family
//
// DIR has the folders published, field, rubick, sia and dl2, as pacer import reads them. Of published
// it uses the tables of large models with a recorded plan. Of this project's own
// measurements it uses those on GPUs, and not the set that pacer demo predicts.
package main
