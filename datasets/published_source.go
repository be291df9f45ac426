package datasets

import (
	"regexp"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// publishedSource is what the documents of a source state about all rows, outside the columns.
type publishedSource struct {
	match     string       // in the lower-case source column
	table     string       // name of a file without that column
	framework string       // training stack, in the form of package stack, "" = the source itself
	parts     string       // parts of the stack, whatever its name, in the form of package stack
	noted     []notedParts // the same for rows with notes that say so
	recipes   []recipe     // the same for rows with a recipe that says so
	adapted   []stackParts // the same for rows that train adapters
	dated     bool         // names of files in source_path end in the month of the run
	memory    stack.Memory // what mem_gib counts, "" = what the training stack reports
	folders   bool         // the training stack is the model's folder, "PyTorch/BERT"

	// releases are those of training stacks that a row names without one.
	releases map[string]string
	// nodes maps accelerators to node types of the catalog, if the document describes other
	// machines than the usual ones.
	nodes map[string]string
	// devices are multiplications that the document times alone on the devices of the rows.
	devices timedDevices
	// precision is that of tables without a column for it.
	precision spec.Precision
	// hostBatch: the micro-batch column counts per host, not per device.
	hostBatch bool
	// distributed: the optimizer is sharded over the data parallel ranks unless the row says
	// otherwise.
	distributed bool
	// stageBatches: a pipeline without a recorded micro-batch runs as many as it has stages.
	stageBatches bool
	// seqLens are tokens per sample by model of the catalog, if the documents state them.
	seqLens map[string]int
	// adapters: only adapters are trained, on samples of another length than the model's.
	adapters bool
}

// stackParts are parts of a training stack of a name, "" = any.
type stackParts struct{ name, parts string }

// notedParts are parts of a training stack that some words in the notes of a row on at least so many devices stand for.
type notedParts struct {
	words   *regexp.Regexp
	parts   string
	devices int // 0 = any number
}

// of reports whether a text states that stack.
func (p *stackParts) of(framework string) bool {
	s, _ := stack.Parse(framework) // with an error too, it has the name
	return p.name == "" || s.Name == p.name
}

// publishedSources is searched in order. Facts without a column come from:
//
//   - papers: the year in which they ran
//   - bigscience: Jean Zay's nodes and the years 2021 and 2022, as its chronicles say; on 320 and more A100, from
//     February 20, 2022 on, runs hang without CUDA_LAUNCH_BLOCKING=1 (chronicles-prequel.md and tr11-176B-ml.slurm of
//     train/tr11-176B-ml); publishedDocuments has more
//   - fms-fsdp: the network its README states, 400 and 800 Gb/s per node, and
//     torch.compile; notes say which models were sharded inside a node (HSDP)
//   - InternEvo: four 100 Gb/s RoCE NICs per node, as its document says
//   - Lambda: the batch grows with the devices of the host (H100, BERT base:
//     320, 640, 1280, 2560 on 1, 2, 4, 8)
//   - litgpt: fine-tuning of adapters, on text of no recorded length
//   - Megatron-Bridge: tables of release 25.09 print no precision; a footnote
//     says fp8. Its recipes use the distributed optimizer
//     (src/megatron/bridge/recipes/utils/optimizer_utils.py,
//     scripts/performance/configs); where FSDP is used instead the tables say so. bridgeRecipes are the others
//   - LiBai: the commit of Megatron-LM that it is compared with is not later than its first release, March 2022
//     (Benchmark.md of its documentation)
//   - MLPerf Training: where the frozen weights of LoRA stay in fp8 without transposes (fp8_params and
//     disable_parameter_transpose_cache in conf/megatron_gpt_peft_tuning_config.yaml under llama2_70b_lora): NeMo in 4.0
//     (NVIDIA, Red Hat, GigaComputing) and 4.1 (NVIDIA's eos_ngc24.09_nemo); Megatron-LM on MI325X in 5.0 (GigaComputing)
//     and 5.1 (AMD, and ENABLE_TRANSPOSE_CACHE=0 in MangoBoost's config_MI325X_1x8x1.sh). NeMo's files of 5.0 differ
//   - MLPerf Training: adapters have a dropout of 0.1 (mlcommons/training, llama2_70b_lora/README.md)
//   - NeMo Framework Launcher: encoder_seq_length of its BERT configs
//     (launcher_scripts/conf/training/bert); rows with binned lengths have at most
//     that many tokens
//   - SimuMax: its scripts run Megatron Core with --sequence-parallel, --cp-comm-type a2a and
//     --moe-token-dispatcher-type alltoall, without --overlap-grad-reduce (simu_tools/megatron_scripts), and print
//     torch.cuda.max_memory_allocated
//   - torchtitan: as many micro-batches as pipeline stages is its default
//     (torchtitan/parallelisms/pipeline_llama.py); notes say where nothing was compiled or tensor parallel traffic
//     asynchronous, which are no defaults
//   - XTuner: Pai-Megatron-Patch of April 2025 with fused permutation; names of configurations, which notes repeat, say
//     where DeepEP and overlap of gradients were on, and which modules were recomputed
//     (megatron_moe_benchmark.md of its documentation)
var publishedSources = []*publishedSource{
	{match: "2104.04473", table: "megatron_sc21", framework: "Megatron-LM@2021"},
	{match: "2205.05198", table: "korthikanti_2205_05198", framework: "Megatron-LM@2022"},
	{match: "bigscience", table: "bigscience", framework: "Megatron-DeepSpeed@2021", nodes: jeanZay, noted: []notedParts{{words: regexp.MustCompile(`\b02-2\d\b.* 2022\b`), parts: "launch=blocking", devices: 320}}},
	{match: "fms-fsdp", table: "fms_fsdp", framework: "FSDP@2024", parts: "launch=compiled", noted: []notedParts{{words: regexp.MustCompile(`\bHSDP\b`), parts: "zero=hsdp"}},
		nodes: map[string]string{"A100-80GB-SXM": "fms-fsdp A100", "H100-80GB-SXM": "fms-fsdp H100"}},
	{match: "internevo", table: "internevo", framework: "InternEvo", nodes: map[string]string{"A100-80GB-SXM": "InternEvo A100"}},
	{match: "internlm/xtuner", table: "xtuner_moe_h800", framework: "Megatron Core@2025-04", parts: "overlap=none routing=fused",
		releases: map[string]string{"Megatron-LM": "Megatron Core@2025-04"}, noted: []notedParts{
			{words: regexp.MustCompile(`\bdeepep\b`), parts: "dispatch=per-node"},
			{words: regexp.MustCompile(`\bzero(/tp)? overlap\b`), parts: "overlap=backward"},
			{words: regexp.MustCompile(`\bzero/tp overlap\b`), parts: "tp=fused"},
			{words: regexp.MustCompile(`\brecompute=select\b`), parts: "recompute=moe_act+layernorm"},
			{words: regexp.MustCompile(`\brecompute=moe\b`), parts: "recompute=moe+layernorm"},
		}},
	{match: "lambdal/", table: "lambda_dl_benchmark", framework: "PyTorch", hostBatch: true},
	{match: "litgpt", table: "litgpt", framework: "LitGPT", adapters: true},
	{match: "megatron-bridge", table: "megatron_bridge", framework: "Megatron-Bridge", precision: spec.FP8, distributed: true, recipes: bridgeRecipes},
	{match: "nemo-framework-launcher", table: "nemo_megatron_launcher", framework: "NeMo Megatron",
		seqLens: map[string]int{"BERT-4B": 512, "BERT-20B": 512, "BERT-100B": 512}},
	{match: "mlcommons/training_results_v4.0", adapted: []stackParts{{"NeMo", "weights=fp8-once"}, {"", "adapters=dropout"}}},
	{match: "mlcommons/training_results_v4.1", adapted: []stackParts{{"NeMo", "weights=fp8-once"}, {"", "adapters=dropout"}}},
	{match: "mlcommons/training_results_v5.0", adapted: []stackParts{{"Megatron-LM", "weights=fp8-once"}, {"", "adapters=dropout"}}},
	{match: "mlcommons/training_results_v5.1", adapted: []stackParts{{"Megatron-LM", "weights=fp8-once"}, {"", "adapters=dropout"}}},
	{match: "mlcommons/training_results", adapted: []stackParts{{"", "adapters=dropout"}}},
	{match: "nvidia/dgxc-benchmarking", table: "dgxc_benchmarking", framework: "NeMo", recipes: dgxcRecipes},
	{match: "nvidia/nemo", table: "nemo_2407", framework: "NeMo"},
	{match: "oneflow-inc/libai", table: "oneflow_libai", framework: "LiBai", releases: map[string]string{"Megatron-LM": "Megatron-LM@2022-03"}},
	{match: "simumax", table: "simumax_b200", framework: "Megatron Core", parts: "sequence=always cp=a2a overlap=none dispatch=all-to-all", memory: stack.Allocated,
		devices: simumaxDevices},
	{match: "torchtitan", table: "torchtitan", framework: "torchtitan", dated: true, stageBatches: true, noted: []notedParts{
		{words: regexp.MustCompile(`\beager\b`), parts: "launch=eager"},
		{words: regexp.MustCompile(`(?i)\basync ?TP\b`), parts: "tp=async"},
	}},
	{match: "deeplearningexamples", table: "nvidia_dle", folders: true},

	// Stacks without published tables here.
	{match: "deepspeed", framework: "Megatron-DeepSpeed"},
	{match: "gpt-neox", framework: "Megatron-DeepSpeed"},
	{match: "nanotron", framework: "Nanotron"},
	{match: "llm-foundry", framework: "LLM Foundry"},
	{match: "fsdp", framework: "FSDP"},
	{match: "megatron-lm", framework: "Megatron-LM"},
	{match: "nemo", framework: "NeMo"},
}

// sourceOf returns the facts about a source, found by its column, else by the name of the file. A source of unknown stacks
// is its own framework, so that its rows share a calibration only with each other. In its name, @ and = state no release and
// no part.
func sourceOf(source, table string) *publishedSource {
	lower := strings.ToLower(source)
	var own publishedSource
	for _, s := range publishedSources {
		if source != "" && strings.Contains(lower, s.match) || source == "" && s.table == table && s.table != "" {
			if s.framework != "" || s.folders {
				return s
			}
			own = *s
			break
		}
	}
	own.framework = strings.NewReplacer("@", "", "=", "").Replace(source)
	return &own
}
