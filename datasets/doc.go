// Package datasets reads published measurements and job traces in their original
// files, and converts them to the types of package spec. One file per data set:
//
//	rubick.go      step times of 539 configurations on A800 (Zhang et al., Rubick, MLSys 2025)
//	gavel.go       throughput tables of V100, P100, K80 (Narayanan et al., Gavel, OSDI 2020)
//	published.go   training throughput from public documents, one schema for twelve sources
//	workload.go    job traces; workload_format.go lists the formats, a file each: philly.go, helios.go, ...
//
// Start with importer.go, then rubick.go, the shortest complete importer, and
// workload.go. Subpackages: catalog (models, accelerators, machines), measured
// (this project's measurements), synthetic (generated workloads).
//
// Readers take an fs.FS or an io.Reader and never write. They convert units to
// seconds, bytes and samples/s. An invalid row yields a *RowError with file, line,
// column and value, and reading continues. A row that is doubtful by a stated
// rule has Measurement.Doubt set. A row whose plan breaks a legality rule is kept
// (see Warnings).
package datasets
