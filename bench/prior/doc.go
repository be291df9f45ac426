// Command prior trains what family "hybrid" believes before it has seen a row of a job,
// on published measurements, and writes perfmodel/family/prior.json:
//
//	go run ./bench/prior DIR > perfmodel/family/prior.json
//
// DIR holds the tables that pacer import published reads. Only rows of the
// sources below are trained on, those that train large models with a recorded
// plan. What this project measured itself is not among them: pacer demo predicts it.
package main
