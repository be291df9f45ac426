// Package batches reads questions from Arrow record batches, and writes predictions to them: what Arrow Flight has in place
// of the JSON of POST /v1/predict/batch.
//
// Start with questions.go (Read) and predictions.go (Schema, Predictions). writer.go sends record batches.
package batches
