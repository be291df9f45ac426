package slurm

import (
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestSubmission: arguments win over the environment, which wins over the #SBATCH lines.
func TestSubmission(t *testing.T) {
	const script = "#!/bin/bash\n# comment\n#SBATCH --gres=gpu:a100:2 -N 3 # nodes\n\n#SBATCH --comment=\"pacer:model=m, batch=64\"\ntrue\n#SBATCH --nodes=9\n"
	for _, c := range []struct {
		args, env          string
		devices, nodes     int
		gpuType, fromStdin string
	}{
		{"job.sh --nodes=7", "", 6, 3, "a100", "job.sh"},
		{"-N2 job.sh", "", 4, 2, "a100", "job.sh"},
		{"-HN 2 --wait -J x job.sh", "", 4, 2, "a100", "job.sh"},
		{"--nodes 2-2 -- job.sh", "", 4, 2, "a100", "job.sh"},
		{"--gres gpu:8,license:1 job.sh", "", 24, 3, "", "job.sh"},
		{"--gres=none -G v100:6", "", 6, 3, "v100", ""},
		{"--gres=none --gpus-per-node=2 -n8 --ntasks-per-node=4 -N4", "", 8, 4, "", ""},
		{"--gres=none --gpus-per-task=a100:1 -n 6", "", 6, 3, "a100", ""},
		{"job.sh", "gpu:v100:1", 3, 3, "v100", "job.sh"},
		{"--gres=gpu:4 job.sh", "gpu:v100:1", 12, 3, "", "job.sh"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Setenv("SBATCH_GRES", c.env)
			s, err := ParseSubmission(strings.Fields(c.args))
			if err == nil {
				err = s.Read([]byte(script), reader().Options)
			}
			if err != nil {
				t.Fatal(err)
			}
			if s.Script != c.fromStdin || s.Stdin != (c.fromStdin == "") || s.Job.Devices != c.devices || s.Nodes != c.nodes || s.GPUType != c.gpuType {
				t.Errorf("%+v", s)
			}
			if !s.Managed || s.Job.Model.Name != "m" || s.Job.GlobalBatch != 64 || s.Job.Accelerator != c.gpuType {
				t.Errorf("job %+v", s.Job)
			}
		})
	}
}

// TestSubmissionSet: the form of the request stays; tasks, CPUs and memory follow.
func TestSubmissionSet(t *testing.T) {
	plan, err := spec.ParsePlan("dp=4,mb=2")
	if err != nil {
		t.Fatal(err)
	}
	four, eight := spec.NewShape(4), spec.NewShape(4, 4)
	for _, c := range []struct {
		args  string
		shape spec.Shape
		want  string
	}{
		{"--gres=gpu:a100:2,license:1 --mem=3G job.sh x", four, "--nodes=1 --gres=gpu:a100:4,license:1 --mem=6G"},
		{"-N1 --gpus-per-node=a100:2 -c 5 job.sh x", eight, "--nodes=2 --gpus-per-node=a100:4 --cpus-per-task=10"},
		{"-G8 -n8 -c 5 job.sh x", four, "--nodes=1 --ntasks=4 --gpus=4"},
		{"-N2 --gres=gpu:8 --ntasks-per-node=1 --mem=101M job.sh x", four, "--nodes=1 --ntasks-per-node=1 --gres=gpu:4 --mem=51M"},
		{"-N2 --gres=gpu:8 --ntasks-per-node=8 job.sh x", eight, "--nodes=2 --ntasks-per-node=4 --gres=gpu:4"},
		{"-n8 --gpus-per-task=1 -c3 job.sh x", four, "--nodes=1 --ntasks=4"},
		{"--gpus-per-task=8 -N2 -n2 job.sh x", four, "--nodes=1 --ntasks=1 --gpus-per-task=4"},
		{"-G1 --comment=pacer:model=m,plan=dp=1,batch=8 job.sh x", four, "--nodes=1 --gpus=4 --comment=pacer:model=m,batch=8,plan=dp=4+tp=1+pp=1+mb=2+ga=1"},
	} {
		s, err := ParseSubmission(strings.Fields(c.args))
		if err == nil {
			err = s.Read([]byte("#!/bin/sh\n"), reader().Options)
		}
		if err != nil {
			t.Fatalf("%s: %v", c.args, err)
		}
		got, err := s.Set(c.shape, plan)
		given := strings.Fields(c.args)
		want := slices.Concat(given[:len(given)-2], strings.Fields(c.want), []string{"job.sh", "x"})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s:\n%v, %v\nwant %v", c.args, got, err, want)
		}
	}
}

// TestSubmissionFaults: what cannot be used is named.
func TestSubmissionFaults(t *testing.T) {
	for _, c := range []struct{ args, script, want string }{
		{"--nosuch=1 job.sh", "", `option "--nosuch=1" is not known`},
		{"-Z job.sh", "", `option "-Z" is not known`},
		{"--gres", "", `option "--gres" has no value`},
		{"-n1 : -n2 job.sh", "", "heterogeneous"},
		{"--gres=gpu:1 -a 1-3 job.sh", "", "an array"},
		{"--gres=gpu:1 -N1-4 job.sh", "", `nodes: "1-4" is a range`},
		{"--gres=gpu:1 -N x job.sh", "", `nodes: "x" is no number`},
		{"--gres=gpu:a100:x job.sh", "", `"x" is no number`},
		{"--gres=gpu:1 -G2 job.sh", "", "options gres and gpus both request GPUs"},
		{"job.sh", "", "no GPUs requested"},
		{"job.sh", "#SBATCH --gres='gpu:1\n", "quote"},
		{"job.sh", "#SBATCH gpu:1\n", `"gpu:1" is no option`},
		{"--gres=gpu:1 --comment=pacer:batch=8 job.sh", "", "model is missing"},
		{"--gres=gpu:1 --comment=pacer:model=unknown job.sh", "", `unknown model "unknown"`},
		{"--gres=gpu:1 --comment=pacer:model=m,batch=0 job.sh", "", `batch: "0"`},
	} {
		s, err := ParseSubmission(strings.Fields(c.args))
		if err == nil {
			err = s.Read([]byte(c.script), reader().Options)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.args, err, c.want)
		}
	}
	for args, want := range map[string]string{"--gres=gpu:4 -n3 job.sh": "3 tasks for 4 devices on 1 nodes", "--gres=gpu:4 --mem=4X job.sh": `mem: "4X"`} {
		s, err := ParseSubmission(strings.Fields(args))
		if err == nil {
			err = s.Read(nil, reader().Options)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.Set(spec.NewShape(2), spec.Plan{DP: 2}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// FuzzSubmission: no arguments and no script make it panic, and what is set can be read again.
func FuzzSubmission(f *testing.F) {
	f.Add("--gres=gpu:2 -n 2 job.sh", "#SBATCH -N1\n")
	f.Add("-HN2 -G8 : x", "#SBATCH --comment='pacer:model=m,batch=1'")
	f.Fuzz(func(t *testing.T, args, script string) {
		s, err := ParseSubmission(strings.Fields(args))
		if err != nil || s.Read([]byte(script), reader().Options) != nil {
			return
		}
		set, err := s.Set(spec.NewShape(2), spec.Plan{DP: 2, MicroBatch: 1, AccumSteps: 1})
		if err != nil {
			return
		}
		again, err := ParseSubmission(set)
		if err != nil || again.Script != s.Script {
			t.Fatalf("%q: script %q, was %q: %v", set, again.Script, s.Script, err)
		}
		if err := again.Read([]byte(script), reader().Options); err != nil || again.Job.Devices != 2 {
			t.Fatalf("%q: %d devices: %v", set, again.Job.Devices, err)
		}
	})
}
