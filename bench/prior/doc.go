// Command prior trains what families "analytic" and "hybrid" believe before they
// have seen a row of a job, on public measurements, and writes their prior.json:
//
//	go run ./bench/prior DIR perfmodel/family
//
// DIR has published, sia and dl2 in it, as pacer import reads them. Of published
// only the tables that train large models with a recorded plan are trained on.
// What this project measured itself is not: pacer demo predicts it.
package main
