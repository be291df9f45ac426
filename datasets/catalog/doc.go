// Package catalog lists common models, accelerators and machines, each figure
// with its source. The tables are embedded: nothing is read from disk or network.
//
//	accelerators.csv, more_accelerators.csv   datasheets
//	models.csv, more_models.csv               shapes of neural networks
//	recent_models.csv                         the same, with windows, hybrids and vision towers
//	accelerator_names.csv, model_names.csv    further names, default sequence lengths, sources
//	nodes.csv                                 machines: devices, links, NICs, CPUs, memory
//
// Start with models.go, nodes.go and cluster.go. Figures leave the package in
// base units (bytes, FLOP/s, bytes/s one direction), converted in this package
// only:
//
//   - memory in "GB" is read as GiB, 2^30 bytes
//   - bandwidths in GB/s are 10^9 bytes/s; a scale-up link is printed as the sum
//     of both directions and halved here
//   - PCIe is the line rate of the lanes after encoding, one direction
//
// Names ignore case and punctuation: "llama-3-8b", "LLAMA3_8B" and "Llama3-8B"
// are one model. AcceleratorOf and ModelOnHub also take names as people write
// them, with words in any order (words.go). The error for an unknown name is an *UnknownError with the
// nearest names. Functions return copies and are safe for concurrent use.
package catalog
