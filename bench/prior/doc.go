// Command prior trains what family "hybrid" believes before it has seen a row of
// a job, on public measurements, and writes perfmodel/family/prior.json:
//
//	go run ./bench/prior DIR > perfmodel/family/prior.json
//
// DIR has published, sia and dl2 in it, as pacer import reads them. Of published
// only the tables that train large models with a recorded plan are trained on.
// What this project measured itself is not: pacer demo predicts it.
package main
