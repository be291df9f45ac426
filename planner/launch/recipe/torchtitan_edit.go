package recipe

import (
	"errors"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/launch"
	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// Keys of torchtitan that an edit treats in a way of its own.
const (
	titanShards     = "parallelism.data_parallel_shard_degree" // absent or -1 = all devices that are left
	titanBatch      = "training.global_batch_size"
	titanLocal      = "training.local_batch_size"
	titanOffload    = "training.enable_cpu_offload"
	titanRecompute  = "activation_checkpoint.mode"
	titanConverters = "model.converters"
	titanFloat8     = "quantize.linear.float8" // float8 in releases before 0.2
)

// titanOldNames are the names of keys in older releases.
var titanOldNames = map[string][]string{
	titanLocal:  {"training.batch_size"},
	titanShards: {"training.data_parallel_shard_degree", "training.data_parallel_degree"},
	"parallelism.data_parallel_replicate_degree": {"training.data_parallel_replicate_degree"},
	"parallelism.tensor_parallel_degree":         {"training.tensor_parallel_degree"},
	"parallelism.context_parallel_degree":        {"experimental.context_parallel_degree"},
	"parallelism.pipeline_parallel_degree":       {"experimental.pipeline_parallel_degree"},
	"parallelism.pipeline_parallel_schedule":     {"experimental.pipeline_parallel_schedule"},
}

// titanChanges returns changes that lead from one plan to another, those that touch the fewest keys first: what differs
// between the files of both plans, that with the global batch, that with the degrees of parallelism and the like, and all
// keys of a plan. A file that leaves open how many
// devices share the states goes on to do so where that gives the plan.
func (r *Recipe) titanChanges(from, to *spec.Config) [][]change {
	was, now := *from, *to
	// Package launch does not write selective recomputation, which torchtitan understands otherwise.
	keepsRecompute := was.Plan.Recompute == now.Plan.Recompute
	if was.Plan.Recompute = spec.RecomputeNone; keepsRecompute {
		now.Plan.Recompute = spec.RecomputeNone
	}
	before, err := r.settings(&was)
	known := err == nil
	after, err := r.settings(&now)
	if onlyModel(err) && was.Plan.EP == now.Plan.EP {
		was, now = llamaLike(was), llamaLike(now)
		before, _ = r.settings(&was)
		known = before != nil
		after, err = r.settings(&now)
	}
	if err != nil {
		return nil
	}
	differ := func(e *keyfile.Entry) bool {
		i := slices.IndexFunc(before, func(o keyfile.Entry) bool { return o.Key == e.Key })
		return known && (i < 0 || before[i].Value != e.Value)
	}
	var out [][]change
	for _, more := range []func(e *keyfile.Entry) bool{
		func(*keyfile.Entry) bool { return false },
		func(e *keyfile.Entry) bool { return e.Key == titanBatch },
		func(e *keyfile.Entry) bool {
			return e.Key == titanBatch || r.ofPlan(e) && (r.has(e.Key) || !ofStages(e.Key))
		},
		func(e *keyfile.Entry) bool { return e.Key == titanBatch || r.ofPlan(e) },
	} {
		var changes []change
		for i := range after {
			e := &after[i]
			if e.Key == titanRecompute && keepsRecompute || e.Key != titanRecompute && !differ(e) && !more(e) {
				continue
			}
			changes = append(changes, change{key: e.Key, value: e.Written})
		}
		for i := range before {
			// Compilation is no part of a plan, though float8 is written with it.
			if e := &before[i]; !slices.ContainsFunc(after, func(o keyfile.Entry) bool { return o.Key == e.Key }) && !strings.HasPrefix(e.Key, "compile.") {
				changes = append(changes, change{key: e.Key, value: e.Written, remove: true})
			}
		}
		changes, ok := r.titanNames(changes)
		if !ok {
			continue
		}
		if shards := r.titanName(titanShards); !r.has(shards) || r.valueOf(shards) == "-1" {
			out = append(out, slices.DeleteFunc(slices.Clone(changes), func(c change) bool { return c.key == shards }))
		}
		out = append(out, changes)
	}
	return out
}

// onlyModel reports whether err says that package launch lacks the network, and nothing else of a configuration.
func onlyModel(err error) bool {
	var bad *launch.Inexpressible
	return errors.As(err, &bad) && !slices.ContainsFunc(bad.Parts, func(p launch.Part) bool { return p.Field != "model" })
}

// ofPlan reports whether a plan decides a key, and the file needs it to say that plan.
func (r *Recipe) ofPlan(e *keyfile.Entry) bool {
	switch {
	case r.has(r.titanName(e.Key)):
	case e.Value == "1" && strings.HasSuffix(e.Key, "_degree"), e.Value == "false": // as without the key
		return false
	}
	return strings.HasPrefix(e.Key, "parallelism.") || e.Key == titanLocal || e.Key == titanOffload
}

// ofStages reports whether a key says how layers and micro-batches go through a pipeline. Without it torchtitan decides.
func ofStages(key string) bool {
	return strings.HasPrefix(key, "parallelism.pipeline_parallel_") && !strings.HasSuffix(key, "_degree") || strings.HasPrefix(key, "parallelism.module_")
}

// titanName returns the name of a key in the release that the file is for.
func (r *Recipe) titanName(key string) string {
	old := titanOldNames[key]
	if r.has(key) || len(old) == 0 {
		return key
	}
	if i := slices.IndexFunc(old, r.has); i >= 0 {
		return old[i]
	}
	if r.isOldTitan() {
		return old[0]
	}
	return key
}

// isOldTitan reports whether the file is for a release before the table parallelism.
func (r *Recipe) isOldTitan() bool {
	if slices.ContainsFunc(r.entries, func(e keyfile.Entry) bool { return strings.HasPrefix(e.Key, "parallelism.") }) {
		return false
	}
	for _, names := range titanOldNames {
		if slices.ContainsFunc(names, r.has) {
			return true
		}
	}
	return false
}

// titanNames gives changes the names of the file's release, and leaves out those to values that the file has. ok is false
// where that release has no such key.
func (r *Recipe) titanNames(changes []change) (out []change, ok bool) {
	float8 := titanFloat8
	if slices.ContainsFunc(r.entries, func(e keyfile.Entry) bool { return strings.HasPrefix(e.Key, "float8.") }) {
		float8 = "float8"
	}
	for _, c := range changes {
		if c.key == titanConverters {
			c = r.titanConverter(c, float8)
		}
		c.key = r.titanName(c.key)
		if rest, inside := strings.CutPrefix(c.key, titanFloat8); inside {
			c.key = float8 + rest
		}
		i := slices.IndexFunc(r.entries, func(e keyfile.Entry) bool { return e.Key == c.key })
		switch {
		case i < 0 && c.remove:
		case i >= 0 && !c.remove && r.entries[i].List == nil && r.entries[i].Value == strings.Trim(c.value, `"`):
		case i < 0 && r.isOldTitan() && c.key == titanBatch: // it follows from the local batch
		case i < 0 && r.isOldTitan() && strings.HasPrefix(c.key, "parallelism."):
			return nil, false
		default:
			out = append(out, c)
		}
	}
	return out, true
}

// titanConverter adds float8 to the converters of the file, or removes it from them.
func (r *Recipe) titanConverter(c change, float8 string) change {
	var list []string
	for i := range r.entries {
		if r.entries[i].Key == titanConverters {
			list = slices.DeleteFunc(slices.Clone(r.entries[i].List), func(s string) bool { return strings.Contains(s, "float8") })
		}
	}
	if !c.remove {
		list = append(list, float8)
	}
	c.remove = len(list) == 0
	c.value = `["` + strings.Join(list, `", "`) + `"]`
	return c
}
