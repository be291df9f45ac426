package trainlog

import (
	"cmp"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// reader reads the lines of a format.
type reader struct {
	read  func(text string) (l Log, ok bool) // ok is false for all other lines
	words []string                           // one of them is in each line of the format
}

var readers = map[Format]reader{
	Megatron:   {megatron, []string{"elapsed time per iteration", "memory (MB)", "...."}},
	Torchtitan: {torchtitan, []string{"tps:", "Trainer is initialized", "device mesh with parallelism"}},
	DeepSpeed:  {deepSpeed, []string{"SamplesPerSec=", "iter time (s):"}},
	NeMo:       {nemo, []string{"train_step_timing"}},
	Lightning:  {lightning, barUnits},
	Trainer:    {trainer, append([]string{"train_runtime", " batch size", "ccumulation steps = ", "optimization steps = "}, barUnits...)},
	MaxText:    {maxText, []string{"completed step:"}},
}

// number matches a number, perhaps with separators of thousands.
const number = `([0-9][0-9,]*(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)`

// field returns the number that pattern finds, 0 if there is none that is finite and positive.
func field(pattern *regexp.Regexp, text string) float64 {
	m := pattern.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	return parse(m[len(m)-1])
}

func parse(text string) float64 {
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil || math.IsInf(v, 0) || !(v > 0) {
		return 0
	}
	return v
}

// maxCount is the largest whole number that is taken for a count.
const maxCount = 1 << 40

func count(pattern *regexp.Regexp, text string) int {
	if v := field(pattern, text); v <= maxCount {
		return int(v)
	}
	return 0
}

func re(pattern string) *regexp.Regexp {
	return regexp.MustCompile(strings.ReplaceAll(pattern, "NUMBER", number))
}

var (
	megatronTotal    = re(`\biteration +[0-9]+/ *NUMBER *\|`)
	megatronTime     = re(`elapsed time per iteration \(ms\): *NUMBER`)
	megatronSec      = re(`elapsed time per iteration \(s\): *NUMBER`)
	megatronBatch    = re(`global batch size: *NUMBER`)
	megatronMemory   = re(`memory \(MB\).*\| max allocated: *NUMBER`)
	megatronReserved = re(`memory \(MB\).*\| max reserved: *NUMBER`)
	megatronStep     = regexp.MustCompile(`\biteration +([0-9]+)/`)
	megatronArgument = regexp.MustCompile(`^(\w+) \.{3,} (\d+)$`)
)

// megatron reads "iteration 10/ 500 | consumed samples: 640 | elapsed time per iteration (ms): 1310.5 | ... | global
// batch size: 64 |", which is the mean since the line before, the same in seconds of Megatron-DeepSpeed, "[Rank 0]
// (after 10 iterations) memory (MB) | ...", in MiB, and the arguments "micro_batch_size ........ 4".
func megatron(text string) (l Log, ok bool) {
	if m := megatronArgument.FindStringSubmatch(text); m != nil {
		if v := megatronArguments(&l)[m[1]]; v != nil {
			*v = int(min(parse(m[2]), maxCount))
			return l, true
		}
		return l, false
	}
	if peak := field(megatronMemory, text); peak > 0 {
		return Log{PeakBytes: peak * (1 << 20), ReservedBytes: field(megatronReserved, text) * (1 << 20)}, true
	}
	sec := cmp.Or(field(megatronTime, text)/1e3, field(megatronSec, text))
	line := Line{Step: count(megatronStep, text), Sec: sec, GlobalBatch: count(megatronBatch, text)}
	return Log{Lines: []Line{line}, Total: count(megatronTotal, text)}, line.Step > 0 && line.Sec > 0
}

// megatronArguments returns where the arguments of Megatron-LM belong that a plan has too.
func megatronArguments(l *Log) map[string]*int {
	return map[string]*int{"micro_batch_size": &l.MicroBatch, "seq_length": &l.SeqLen, "data_parallel_size": &l.DP, "tensor_model_parallel_size": &l.TP,
		"pipeline_model_parallel_size": &l.PP, "context_parallel_size": &l.CP}
}

var (
	titanStep   = re(`\bstep: *NUMBER +loss:`)
	titanTokens = re(`\btps: *NUMBER`)
	titanMemory = re(`\bmemory: *NUMBER *GiB`)
	titanBatch  = regexp.MustCompile(`global batch size ([0-9]+),`)
	titanLocal  = regexp.MustCompile(`local batch size ([0-9]+),`)
	titanAccum  = regexp.MustCompile(`gradient accumulation steps ([0-9]+),`)
	titanMesh   = regexp.MustCompile(`\b(pp|dp_replicate|dp_shard|cp|tp)=([0-9]+)`)
	titanSeq    = regexp.MustCompile(`sequence length ([0-9]+)`)
	titanTotal  = regexp.MustCompile(`total steps ([0-9]+)`)
)

// torchtitan reads "step: 10 loss: 8.1 memory: 9.46GiB(64.99%) tps: 7,282 ..." and the lines of its settings and mesh. tps is
// of one device: torchtitan divides the tokens of a rank by the ranks that share them.
func torchtitan(text string) (l Log, ok bool) {
	if strings.Contains(text, "Trainer is initialized with local batch size") {
		return Log{GlobalBatch: count(titanBatch, text), MicroBatch: count(titanLocal, text), AccumSteps: count(titanAccum, text), SeqLen: count(titanSeq, text),
			Total: count(titanTotal, text)}, true
	}
	if strings.Contains(text, "device mesh with parallelism") {
		degrees := map[string]int{}
		for _, m := range titanMesh.FindAllStringSubmatch(text, -1) {
			degrees[m[1]] = int(min(parse(m[2]), maxCount))
		}
		return Log{DP: degrees["dp_replicate"] * degrees["dp_shard"], TP: degrees["tp"], PP: degrees["pp"], CP: degrees["cp"]}, true
	}
	if strings.Contains(text, "validate step:") {
		return l, false
	}
	line := Line{Step: count(titanStep, text), Tokens: field(titanTokens, text)}
	return Log{Lines: []Line{line}, ReservedBytes: field(titanMemory, text) * (1 << 30)}, line.Step > 0 && line.Tokens > 0
}

var (
	deepStep     = regexp.MustCompile(`(?:[0-9]+/|global_step=)([0-9]+), (?:RunningAvg)?SamplesPerSec=`)
	deepCurrent  = re(`\bCurrSamplesPerSec=NUMBER`)
	deepMean     = re(`\b(?:RunningAvg)?SamplesPerSec=NUMBER`)
	deepIterTime = re(`\bsteps: *[0-9]+ loss: .*\biter time \(s\): *NUMBER`)
	deepSteps    = re(`\bsteps: *NUMBER +loss: `)
	deepMemory   = re(`\bMaxMemAllocated=NUMBER *GB`)
	deepTime     = regexp.MustCompile(`\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\]`)
)

// deepSpeed reads "[TIME] [INFO] [timer.py:197:stop] 0/17, RunningAvgSamplesPerSec=..., CurrSamplesPerSec=...,
// MemAllocated=1.75GB, MaxMemAllocated=2.6GB", in GiB. Releases before 0.7 print only SamplesPerSec, the mean since
// the start. The engine of pipelines prints "steps: 10 loss: 2.1 iter time (s): 0.512 samples/sec: 125.0" instead.
func deepSpeed(text string) (l Log, ok bool) {
	if sec := field(deepIterTime, text); sec > 0 {
		return Log{Lines: []Line{{Step: count(deepSteps, text), Sec: sec}}}, count(deepSteps, text) > 0
	}
	line := Line{Step: count(deepStep, text), Samples: field(deepCurrent, text)}
	if line.Samples == 0 {
		line.Samples, line.mean = field(deepMean, text), true
	}
	if m := deepTime.FindStringSubmatch(text); m != nil {
		line.At, _ = time.Parse("2006-01-02 15:04:05,000", m[1]) // a zero time if it is none
	}
	return Log{Lines: []Line{line}, PeakBytes: field(deepMemory, text) * (1 << 30)}, line.Step > 0 && line.Samples > 0
}

var (
	nemoTime  = re(`\btrain_step_timing in s[:=] *NUMBER`)
	nemoStep  = re(`\bglobal_step[:=] *NUMBER`)
	nemoBatch = re(`\bglobal_batch_size[:=] *NUMBER`)
)

// nemo reads "... | global_batch_size: 32 | global_step: 120 | ... | train_step_timing in s: 0.0315", and the same
// with "=" in a progress bar. global_step is from 0.
func nemo(text string) (l Log, ok bool) {
	line := Line{Step: count(nemoStep, text) + 1, Sec: field(nemoTime, text), GlobalBatch: count(nemoBatch, text)}
	return Log{Lines: []Line{line}}, line.Sec > 0 && strings.Contains(text, "global_step")
}

// lightning reads "Epoch 0: 50%|#####     | 50/100 [00:10<00:10, 4.93it/s, v_num=0]", of micro-batches. The numbers
// begin again with an epoch: only the first one counts.
func lightning(text string) (l Log, ok bool) {
	if !strings.HasPrefix(text, "Epoch ") || strings.Contains(text, "train_step_timing") {
		return l, false
	}
	line, _ := progress(text)
	return Log{Lines: []Line{line}}, line.Step > 0
}

var (
	trainerBatch   = re(`Total train batch size \(w\. parallel, distributed & accumulation\) = NUMBER`)
	trainerMicro   = re(`Instantaneous batch size per device = NUMBER`)
	trainerAccum   = re(`Gradient Accumulation steps = NUMBER`)
	trainerTotal   = re(`Total optimization steps = NUMBER`)
	trainerRuntime = re(`'train_runtime': '?NUMBER`)
	trainerSteps   = re(`'train_steps_per_second': '?NUMBER`)
)

// trainer reads the progress bar "20%|##        | 20/100 [00:10<00:40, 2.00it/s]", of steps, the settings that
// Trainer prints at the start, and {'train_runtime': ..., 'train_steps_per_second': ...} at the end. The bar of
// diffusers has "Steps: " in front.
func trainer(text string) (l Log, ok bool) {
	text = strings.TrimPrefix(text, "Steps: ")
	l = Log{GlobalBatch: count(trainerBatch, text), MicroBatch: count(trainerMicro, text), AccumSteps: count(trainerAccum, text), Total: count(trainerTotal, text)}
	if rate := field(trainerSteps, text); rate > 0 {
		l.RunSec = field(trainerRuntime, text)
		l.RunSteps = int(math.Round(min(rate*l.RunSec, maxCount)))
		return l, l.RunSteps > 0
	}
	if line, total := progress(text); line.Step > 0 && !strings.HasPrefix(text, "Epoch ") && !strings.Contains(text, ": ") {
		l.Lines, l.Total = []Line{line}, total
	}
	return l, len(l.Lines) > 0 || l.GlobalBatch+l.MicroBatch+l.AccumSteps+l.Total > 0
}

var (
	maxTextTime = re(`\bcompleted step: *[0-9]+, seconds: *NUMBER`)
	maxTextStep = regexp.MustCompile(`\bcompleted step: *([0-9]+),`)
)

// maxText reads "completed step: 9, seconds: 5.667, TFLOP/s/device: 134.9, ..."; steps are from 0.
func maxText(text string) (l Log, ok bool) {
	line := Line{Step: count(maxTextStep, text) + 1, Sec: field(maxTextTime, text)}
	return Log{Lines: []Line{line}}, line.Sec > 0
}
