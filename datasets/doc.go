// Package datasets reads published measurements of training throughput in their
// original files, as spec.Measurement. One file per data set:
//
//	rubick.go     step times of 9 models on up to 64 A800 (Zhang et al., Rubick, MLSys 2025)
//	sia.go        step times of 6 models on 5 types of GPU (Jayaram Subramanya et al., Sia, SOSP 2023)
//	gavel.go      throughput tables of V100, P100, K80 (Narayanan et al., Gavel, OSDI 2020)
//	dl2.go        speeds of jobs with parameter servers (Peng et al., DL2, TPDS 2021)
//	published.go  training throughput from public documents, one schema for twelve sources
//
// Start with importer.go, then dl2.go, the shortest importer. Subpackages:
//
//	trace        job traces as workloads, and the job generators of published simulators
//	huggingface  models from a config.json
//	catalog      common models, accelerators, machines
//	measured     this project's own measurements
//	synthetic    workloads drawn from a seed
//
// Readers take an fs.FS or an io.Reader and never write. They convert units to
// seconds, bytes and samples/s. An invalid row yields a *RowError with file, line,
// column and value, and reading continues. A row that is doubtful by a stated
// rule has Measurement.Doubt set. A row with a plan that breaks a legality rule is
// kept (see spec.Config.Check).
package datasets
