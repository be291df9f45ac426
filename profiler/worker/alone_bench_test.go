package worker

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// BenchmarkOneRankAlone compares the CPU time of a rank's compute, outside of communication and waiting, when the rank runs
// alone and when it runs among the others, one rank a core. Each iteration measures both; the metrics are medians over the
// iterations, so use -benchtime 9x. alone/real should be within 10 % of 1.
func BenchmarkOneRankAlone(b *testing.B) {
	python := torchPython(b)
	for _, degrees := range [][2]int{{2, 1}, {1, 2}} {
		seconds := map[string][2][]float64{}
		name := fmt.Sprintf("tp=%d/pp=%d", degrees[0], degrees[1])
		b.Run(name, func(b *testing.B) {
			clear(seconds)
			for b.Loop() {
				for stage, of := range oneRankAlone(b, python, degrees) {
					s := seconds[stage]
					s[0], s[1] = append(s[0], of[0]), append(s[1], of[1])
					seconds[stage] = s
				}
			}
			for stage, s := range seconds {
				var ratios []float64
				for i := range s[0] {
					ratios = append(ratios, s[1][i]/s[0][i])
				}
				b.ReportMetric(stats.Median(s[0]), "real-cpu-s/stage"+stage)
				b.ReportMetric(stats.Median(s[1]), "alone-cpu-s/stage"+stage)
				b.ReportMetric(stats.Median(s[1])/stats.Median(s[0]), "alone/real/stage"+stage)
				b.ReportMetric(stats.Median(ratios), "median-ratio/stage"+stage)
			}
		})
	}
}

// oneRankAlone returns, by stage, the CPU seconds of a rank's compute among the others and alone.
func oneRankAlone(b *testing.B, python string, degrees [2]int) (out map[string][2]float64) {
	b.Helper()
	file := filepath.Join(b.TempDir(), "out.json")
	cmd := exec.Command(python, filepath.Join("testdata", "alone_time.py"), file, fmt.Sprint(degrees[0]), fmt.Sprint(degrees[1]))
	cmd.Env = append(os.Environ(), "PYTHONPATH=.", "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "CUDA_VISIBLE_DEVICES=")
	if log, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, log)
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		b.Fatal(err)
	}
	return out
}
