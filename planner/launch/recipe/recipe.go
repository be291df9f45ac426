package recipe

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
	"github.com/pacer-ml/pacer/planner/launch/recipe/shell"
)

// Recipe is what a launch file says.
type Recipe struct {
	Format string // name of the format, see Formats
	Facts
	Understood []string    // keys that were used
	Unknown    []string    // keys that are not known: they may change time or memory
	Ignored    []string    // keys that change neither time nor memory much
	Uncounted  []Uncounted // keys that change time or memory in a way that predictions do not count
	Problems   []string    // contradictions and values that cannot be
	Assumed    []string    // what was concluded and is not written
	Unset      []string    // shell variables of the launch command that have no value

	name, text string
	format     *format
	entries    []keyfile.Entry
	off        []keyfile.Entry   // options of MODEL_ARGS that are false
	replaced   map[string]string // what Set replaced
	explicit   map[Field]bool    // numbers that do not follow from others
}

// Uncounted is a key with an effect that predictions do not count. Time and Memory are standard deviations of the
// logarithms of step time and memory by which a prediction becomes less certain.
type Uncounted struct {
	Key, Value, Why string
	Time, Memory    float64
}

// Options configure Read. The zero value is one without variables and finds the format itself.
type Options struct {
	// Format is the name of the format, "" = the one that knows most keys of the file.
	Format string
	// Set gives values to shell variables and OmegaConf names, in place of those of the file.
	Set map[string]string
}

// maxFile bounds the size of a launch file.
const maxFile = 1 << 20

// formats are all formats.
func formats() []*format {
	return []*format{&megatronArguments, &megatronYAML, &torchtitanTOML, &deepspeedJSON, &nemoYAML, &nemoArguments, &automodelYAML, &axolotlYAML, &accelerateYAML, &trainerYAML, &trainerJSON, &trainerArguments, &maxtextYAML, &maxtextArguments, &lightningYAML, &torchrunScript}
}

// Formats lists the names of the formats with a line about each.
func Formats() (out [][2]string) {
	for _, f := range formats() {
		if !slices.ContainsFunc(out, func(o [2]string) bool { return o[0] == f.name }) {
			out = append(out, [2]string{f.name, f.doc})
		}
	}
	return out
}

// Read reads a launch file. name is that of the file; its extension decides the syntax. Text that cannot be parsed, or that
// is of no known format, is an error.
func Read(name string, text []byte, o Options) (*Recipe, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("recipe: %s: larger than %d KiB", name, maxFile>>10)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, fmt.Errorf("recipe: %s: the file is empty", name)
	}
	if strings.EqualFold(filepath.Ext(name), ".py") {
		if bytes.Contains(text, []byte("torchtitan")) {
			return nil, fmt.Errorf("recipe: %s: a configuration in Python is not read, because it would have to be run: %s", name, titanKeys)
		}
		return nil, fmt.Errorf("recipe: %s: a configuration in Python is not read, because it would have to be run: give the TOML, YAML or arguments that it stands for, or the plan to pacer predict --plan", name)
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // the byte order mark of Windows
	kind := syntaxOf(name, text)
	if err := keyfile.CheckNesting(text, kind == isTOML); err != nil {
		return nil, fmt.Errorf("recipe: %s: %w", name, err)
	}
	candidates := formatsOf(kind, o.Format)
	if len(candidates) == 0 {
		return nil, fmt.Errorf("recipe: %s: format %q is not one of those of such a file: %s", name, o.Format, namesOf(kind))
	}
	if kind == isShell {
		return readScript(name, string(text), candidates, o)
	}
	entries, err := entriesOf(kind, name, text)
	if err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	best, most := (*format)(nil), 0
	for _, f := range candidates {
		if n := f.score(entries); n > most || o.Format != "" {
			best, most = f, n
		}
	}
	if best == nil || most < 2 && o.Format == "" {
		if script, job := shell.Container(entries); job != "" {
			r, err := readScript(name, script, formatsOf(isShell, o.Format), o)
			if err != nil {
				err = fmt.Errorf("%w (the commands of its containers are read, as it is a %s)", err, job)
			}
			return r, err
		}
		return nil, fmt.Errorf("recipe: %s: it has no key of a launch file; known are %s", name, namesOf(kind))
	}
	r := newRecipe(name, string(text), best)
	if best == &nemoYAML {
		entries = keyfile.Resolve(entries, o.Set)
	}
	best.apply(r, entries)
	return r, nil
}

func newRecipe(name, text string, f *format) *Recipe {
	return &Recipe{Format: f.name, Facts: newFacts(), name: name, text: text, format: f, explicit: map[Field]bool{}}
}

// formatsOf returns the formats of a syntax with a name, "" = any.
func formatsOf(kind syntaxKind, name string) (out []*format) {
	for _, f := range formats() {
		if f.syntax == kind && (name == "" || name == f.name) {
			out = append(out, f)
		}
	}
	return out
}

// namesOf lists the formats of a syntax.
func namesOf(kind syntaxKind) string {
	var out []string
	for _, f := range formatsOf(kind, "") {
		out = append(out, f.name)
	}
	return strings.Join(out, ", ")
}

// syntaxOf finds the syntax by the name of a file, else by its content.
func syntaxOf(name string, text []byte) syntaxKind {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml":
		return isYAML
	case ".toml":
		return isTOML
	case ".json":
		return isJSON
	case ".sh", ".bash", ".slurm", ".sbatch", ".args", ".job":
		return isShell
	}
	start := bytes.TrimSpace(text)
	switch {
	case start[0] == '{':
		return isJSON
	case bytes.HasPrefix(start, []byte("#!")), start[0] == '-' && bytes.HasPrefix(start, []byte("--")):
		return isShell
	case bytes.Contains(text, []byte("\n[")) || start[0] == '[':
		return isTOML
	case bytes.Contains(text, []byte(": ")) && !bytes.Contains(text, []byte("--num-layers ")):
		return isYAML
	}
	return isShell
}

func entriesOf(kind syntaxKind, name string, text []byte) ([]keyfile.Entry, error) {
	switch kind {
	case isTOML:
		return keyfile.TOML(name, text)
	case isJSON:
		return keyfile.JSON(name, text)
	}
	return keyfile.YAML(name, text)
}

// readScript reads the arguments of the command that starts training.
func readScript(name, text string, candidates []*format, o Options) (*Recipe, error) {
	s, err := shell.Run(name, text, o.Set)
	if err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	var best *format
	var entries []keyfile.Entry
	most, command := 0, []string(nil)
	for _, f := range candidates {
		if f == &torchrunScript && !strings.Contains(text, torchrunMark) {
			continue // a program with arguments of its own
		}
		for i, arguments := range f.launches(s) {
			if n := f.score(arguments); n > most {
				if best, entries, most, command = f, arguments, n, nil; i < len(s.Commands) {
					command = s.Commands[i]
				}
			}
		}
	}
	if why := foreignProgram(command); why != "" && !(best == &trainerArguments && trainerPrograms.MatchString(why)) {
		return nil, fmt.Errorf("recipe: %s: %s", name, why)
	}
	if most < 2 {
		for _, words := range s.Commands {
			if why := foreignProgram(words); why != "" {
				return nil, fmt.Errorf("recipe: %s: %s", name, why)
			}
		}
		return nil, fmt.Errorf("recipe: %s: no command with arguments of %s; is the script started by another one?", name, namesOf(isShell))
	}
	r := newRecipe(name, text, best)
	for v := range s.Unset {
		if v == "PWD" && !strings.Contains(text, v) {
			continue // the library asks for it
		}
		if len(v) > 0 && (v[0] >= 'A' && v[0] <= 'Z' || v[0] >= 'a' && v[0] <= 'z') {
			r.Unset = append(r.Unset, v)
		}
	}
	slices.Sort(r.Unset)
	for _, file := range s.Unread {
		r.Unknown = append(r.Unknown, "source "+file)
	}
	if best == &megatronArguments || best == &trainerArguments {
		r.slurm(s, command)
	}
	read := entries
	if best == &trainerArguments {
		read = fsdpConfig(s, entries)
	}
	best.apply(r, read)
	r.writtenFiles(s)
	if n := best.others(s, entries, most); n > 0 {
		r.assume(fmt.Sprintf("the script starts %d training commands that differ: the first one is read", n+1))
	}
	return r, nil
}

// foreign matches programs with arguments that are not read.
var foreign = regexp.MustCompile(`^(?:.*/)?(openrlhf|verl|swift|ms-swift|llamafactory-cli|axolotl|xtuner|nemorl|nemo_rl|trl|tune|unsloth|colossalai|torchtitan)(?:[./].*)?$`)

// trainerPrograms matches the programs among them that take TrainingArguments.
var trainerPrograms = regexp.MustCompile(`^arguments of (?:llamafactory-cli|trl) `)

// titanKeys says what a configuration of torchtitan in Python has to be written as.
const titanKeys = "write its values as TOML and check that: [model] name and flavor; [training] seq_len, local_batch_size and global_batch_size; [parallelism] tensor_parallel_degree, " +
	"pipeline_parallel_degree, context_parallel_degree, data_parallel_replicate_degree and data_parallel_shard_degree; [activation_checkpoint] mode; model.converters for float8"

// foreignProgram says that a command starts such a program, and which file of it is read, if any.
func foreignProgram(words []string) string {
	i := slices.IndexFunc(words, foreign.MatchString)
	if i < 0 {
		return ""
	}
	program := foreign.FindStringSubmatch(words[i])[1]
	var own []string // options such as --training.seq_len, which are keys of the file
	for j, w := range words[i:] {
		if j > 0 && strings.HasPrefix(w, "--") && strings.Contains(w, ".") && filepath.Ext(w) != ".toml" && !strings.HasPrefix(w, "--job.") {
			if next := i + j + 1; next < len(words) && !strings.Contains(w, "=") && !strings.HasPrefix(words[next], "--") {
				w += " " + words[next]
			}
			own = append(own, w)
		}
	}
	for _, w := range words[i:] {
		if _, value, ok := strings.Cut(w, "="); ok {
			w = value
		}
		if ext := filepath.Ext(w); ext == ".yaml" || ext == ".yml" || ext == ".toml" {
			why := fmt.Sprintf("it starts %s with %s: check that file", program, w)
			if len(own) > 0 {
				why += ", after its keys have the values of " + strings.Join(own, ", ")
			}
			return why
		}
	}
	if program == "torchtitan" {
		return "the configuration of torchtitan is in Python, which is not run: " + titanKeys
	}
	return fmt.Sprintf("arguments of %s are not read: give the plan that they stand for to pacer predict --plan", program)
}

// writtenFiles reads the configurations of DeepSpeed and Accelerate that a script writes and names, or has as a value.
func (r *Recipe) writtenFiles(s *shell.Script) {
	for _, e := range slices.Clone(r.entries) {
		document, ok := s.Written(e.Value)
		read, inside := keyfile.JSON, &deepspeedJSON
		if strings.HasPrefix(e.Value, "{") {
			document, ok = e.Value, true
		}
		switch {
		case !ok || e.Key != "--deepspeed-config" && !slices.Contains(append(deepspeedOptions, accelerateFile), e.Key):
			continue
		case e.Key == accelerateFile:
			read, inside = keyfile.YAML, &accelerateYAML
		}
		entries, err := read(e.Value, []byte(document))
		if err != nil {
			r.problem("%s, which the script writes, is not understood: %v", e.Value, err)
			return
		}
		r.include(inside, entries)
		r.Uncounted = slices.DeleteFunc(r.Uncounted, func(u Uncounted) bool { return u.Key == e.Key && u.Value == e.Value })
		r.Assumed = slices.DeleteFunc(r.Assumed, func(a string) bool { return strings.Contains(a, e.Value+", which is not read") })
		derive(r)
	}
}

// include reads the entries of a file within r. The values of r win.
func (r *Recipe) include(inside *format, entries []keyfile.Entry) {
	inner := newRecipe(r.name, "", inside)
	inside.apply(inner, entries)
	for k, v := range inner.numbers {
		if inside == &accelerateYAML || k != DP && k != Devices { // of all ranks, pipeline and tensor parallel ones too
			r.setDefault(k, v)
		}
	}
	for k, v := range inner.texts {
		r.texts[k] = cmp.Or(r.texts[k], v)
	}
	r.Unknown, r.Uncounted = append(r.Unknown, inner.Unknown...), append(r.Uncounted, inner.Uncounted...)
	r.Problems, r.Assumed = append(r.Problems, inner.Problems...), append(r.Assumed, inner.Assumed...)
}

// nested reads DeepSpeed's settings under the key deepspeed, in place of the name of their file.
func (r *Recipe) nested() {
	var entries []keyfile.Entry
	for _, e := range r.entries {
		if name, ok := strings.CutPrefix(e.Key, "deepspeed."); ok {
			r.Unknown = slices.DeleteFunc(r.Unknown, func(key string) bool { return key == e.Key })
			r.Understood = append(r.Understood, e.Key)
			e.Key = name
			entries = append(entries, e)
		}
	}
	if len(entries) > 0 {
		r.include(&deepspeedJSON, entries)
	}
}
