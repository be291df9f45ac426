// Package candidate finds the configurations that a job can run in.
//
// Terms:
//
//   - A Config is a candidate configuration: group of nodes, plan, shape and predicted
//     speed.
//   - A Set is the candidates of a job with its own plan and number of devices.
//   - A Curve is the candidates of a job with any number of devices.
//   - A job is blind if the oracle has no prediction for it. It runs as submitted.
//
// A Finder queries the oracle and caches the results. Start with finder.go, then
// curve.go; progress.go corrects speeds by the progress of jobs, structure.go by the predictions
// of similar configurations, guess.go has the speeds of blind jobs, host_share.go the CPUs and
// memory of candidates.
package candidate
