// Package datasets reads published measurements and job traces, as they lie in
// their public repositories, into Pacer's vocabulary. One file per data set:
//
//	rubick.go      step times of 539 configurations on A800 (Zhang et al., Rubick, MLSys 2025)
//	gavel.go       throughput tables of V100, P100, K80 (Narayanan et al., Gavel, OSDI 2020)
//	published.go   training throughput printed in public documents, one schema for twelve sources
//	workload.go    job traces; workload_format.go lists the formats, a file each: philly.go, helios.go, ...
//
// Start with importer.go, then rubick.go, which is the shortest whole importer.
// Subpackages: catalog (models, accelerators, machines), synthetic (workloads
// made from a seed).
//
// Readers work on an fs.FS or an io.Reader and never write. Units are converted
// here: what comes out is in seconds, bytes, samples/s. A row that cannot be
// read yields a *RowError with file, line, column and value, and reading goes
// on; a row that can be read but is doubted by a stated rule comes out with
// Measurement.Doubt set; a row whose plan breaks a legality rule is kept (see
// Warnings).
package datasets
