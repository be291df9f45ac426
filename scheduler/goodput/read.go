package goodput

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Device names the files of an accelerator in a data set.
type Device struct {
	Suffix      string // suffix of file names, such as aws in placements-aws.csv; "" = none
	Accelerator string
}

// staged is an application that Read leaves out: its tables have forward passes of
// single pipeline stages instead of steps.
const staged = "gpt_pmp"

// Read reads the tables in a clone of the repository of Pollux or Sia, in its
// simulator's folder, or in the folder traces, which has a folder for each application.
// If several devices have the same accelerator, it uses the first with tables. A folder
// delaunay beside traces may have a table MODEL.csv of tetrahedra with corners p0..p3,
// which interpolate between placements; otherwise a grid does. Errors have file, line
// and value.
func Read(root fs.FS, devices []Device) (*Tables, error) {
	dir, err := find(root)
	if err != nil {
		return nil, err
	}
	folders, err := fs.ReadDir(root, dir)
	if err != nil {
		return nil, fmt.Errorf("goodput: %w", err)
	}
	t := &Tables{apps: map[string]*app{}}
	for _, f := range folders {
		if !f.IsDir() || f.Name() == staged {
			continue
		}
		a, err := readApp(root, path.Join(dir, f.Name()), devices)
		if err != nil {
			return nil, fmt.Errorf("goodput: %w", err)
		}
		if a != nil {
			t.apps[a.name] = a
		}
	}
	return t, nil
}

// find returns the parent folder of the applications.
func find(root fs.FS) (string, error) {
	for _, dir := range []string{".", "traces", "*/traces", "*/*/traces"} {
		files, err := fs.Glob(root, path.Join(dir, "*", "validation-*.csv"))
		if err != nil {
			return "", fmt.Errorf("goodput: %w", err)
		}
		if len(files) > 0 {
			return path.Dir(path.Dir(files[0])), nil
		}
	}
	return "", errors.New("goodput: no file traces/MODEL/validation-BATCH.csv, want a clone of petuum/adaptdl (branch osdi21-artifact) or siasosp23/artifacts")
}

// readApp reads one application, nil if it was not measured on any of the devices.
func readApp(root fs.FS, dir string, devices []Device) (*app, error) {
	a := &app{name: path.Base(dir), speeds: map[string]*speeds{}}
	files, err := fs.Glob(root, path.Join(dir, "validation-*.csv"))
	if err != nil || len(files) == 0 {
		return nil, err
	}
	for _, file := range files {
		r, err := readRun(root, file)
		if err != nil {
			return nil, err
		}
		a.runs = append(a.runs, r)
	}
	a.setEnds()
	cells, err := readCells(root, path.Join(path.Dir(path.Dir(dir)), "delaunay", a.name+".csv"))
	if err != nil {
		return nil, err
	}
	for _, d := range devices {
		if a.speeds[d.Accelerator] != nil {
			continue
		}
		s, err := readSpeeds(root, dir, d, cells)
		if err != nil {
			return nil, err
		}
		if s != nil {
			a.speeds[d.Accelerator] = s
		}
	}
	if len(a.speeds) == 0 {
		return nil, nil
	}
	return a, nil
}

// readRun reads a table with a row for each epoch of a training run.
func readRun(root fs.FS, file string) (run, error) {
	_, size, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".csv"), "-")
	batch, err := strconv.Atoi(size)
	if err != nil || batch < 1 {
		return run{}, fmt.Errorf("%s: %q is not a global batch", file, size)
	}
	r := run{batch: batch}
	err = readTable(root, file, []string{"progress", "iteration", "grad_sqr", "grad_var"}, func(c cells) error {
		n := len(r.progress)
		progress, steps := c.number("progress", 0), c.number("iteration", 0)
		sqr, variance := c.number("grad_sqr", 0), c.number("grad_var", 0)
		switch {
		case *c.err != nil:
			return *c.err
		case n > 0 && progress <= r.progress[n-1] || progress == 0:
			return fmt.Errorf("progress %g is not above that of the previous epoch", progress)
		case n > 0 && steps < r.steps[n-1]:
			return fmt.Errorf("iteration %g is below that of the previous epoch", steps)
		case sqr+variance == 0:
			return errors.New("grad_sqr and grad_var are both 0")
		}
		r.progress, r.steps = append(r.progress, progress), append(r.steps, steps)
		r.sqr, r.variance = append(r.sqr, sqr), append(r.variance, variance)
		return nil
	})
	if err == nil && len(r.progress) == 0 {
		err = fmt.Errorf("%s: no epochs", file)
	}
	return r, err
}

// readCells reads tetrahedra, none if the file does not exist.
func readCells(root fs.FS, file string) (out [][4]int, err error) {
	if _, err := fs.Stat(root, file); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	err = readTable(root, file, []string{"p0", "p1", "p2", "p3"}, func(c cells) error {
		var corners [4]int
		for i := range corners {
			corners[i] = c.count("p"+strconv.Itoa(i), 0)
		}
		out = append(out, corners)
		return *c.err
	})
	return out, err
}

// readSpeeds reads the step times on one device, nil if it has no file.
func readSpeeds(root fs.FS, dir string, d Device, cells [][4]int) (*speeds, error) {
	suffix := ""
	if d.Suffix != "" {
		suffix = "-" + d.Suffix
	}
	file := path.Join(dir, "placements"+suffix+".csv")
	if _, err := fs.Stat(root, file); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	placed, err := readPlacements(root, file)
	if err != nil {
		return nil, err
	}
	spread, err := readScalability(root, path.Join(dir, "scalability"+suffix+".csv"))
	if err != nil {
		return nil, err
	}
	s := &speeds{what: path.Base(dir) + " on " + d.Accelerator, accelerator: d.Accelerator, rings: profiles(placed), spread: spread}
	s.between = newGrid(append(slices.Clone(placed), spread...))
	s.minLocal, s.maxLocal = math.MaxInt, 0
	for _, m := range placed {
		if shape := spec.NewShape(m.perNode...); ring(m.perNode) == ring(shape.PerNode()) && !slices.Contains(s.placed, shape) {
			s.placed = append(s.placed, shape)
		}
		s.minLocal, s.maxLocal = min(s.minLocal, int(math.Ceil(m.local))), max(s.maxLocal, int(m.local))
	}
	if len(cells) > 0 {
		if s.between, err = newTetrahedra(placed, spread, cells); err != nil {
			return nil, fmt.Errorf("%s: %w", path.Join(path.Dir(path.Dir(dir)), "delaunay", path.Base(dir)+".csv"), err)
		}
	}
	return s, nil
}

// profiles returns the step times of each ring, with the mean of rows for the same
// number of samples.
func profiles(rows []measurement) map[string]*profile {
	byRing := map[string][]measurement{}
	for _, m := range rows {
		name := ring(m.perNode)
		byRing[name] = append(byRing[name], m)
	}
	out := map[string]*profile{}
	for name, rows := range byRing {
		p := &profile{}
		for _, m := range means(rows) {
			p.local, p.times = append(p.local, m.local), append(p.times, m.timing)
		}
		out[name] = p
	}
	return out
}

// readPlacements reads step times by placement, which has a digit for each node.
func readPlacements(root fs.FS, file string) (out []measurement, err error) {
	err = readTable(root, file, []string{"placement", "local_bsz", "step_time", "sync_time"}, func(c cells) error {
		m := c.measurement()
		for _, digit := range c.of["placement"] {
			if digit < '1' || digit > '9' {
				return fmt.Errorf("placement %q is not a digit 1..9 for each node", c.of["placement"])
			}
			m.perNode = append(m.perNode, int(digit-'0'))
			m.nodes++
			m.replicas += float64(digit - '0')
		}
		if m.nodes == 0 {
			return errors.New("placement is empty")
		}
		out = append(out, m)
		return *c.err
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s: no placements", file)
	}
	return out, err
}

// readScalability reads step times by nodes and replicas, none if the file does not
// exist.
func readScalability(root fs.FS, file string) (out []measurement, err error) {
	if _, err := fs.Stat(root, file); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	err = readTable(root, file, []string{"num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time"}, func(c cells) error {
		m := c.measurement()
		m.nodes, m.replicas = float64(c.count("num_nodes", 1)), float64(c.count("num_replicas", 1))
		out = append(out, m)
		return *c.err
	})
	return out, err
}

// cells are the cells of a row by column. err is the error of the first invalid one.
type cells struct {
	of  map[string]string
	err *error
}

// number returns a finite number of at least least.
func (c cells) number(column string, least float64) float64 {
	v, err := strconv.ParseFloat(c.of[column], 64)
	if (err != nil || !(v >= least) || math.IsInf(v, 0)) && *c.err == nil {
		*c.err = fmt.Errorf("%s %q is not a number of at least %g", column, c.of[column], least)
	}
	return v
}

// count returns a whole number of at least least.
func (c cells) count(column string, least int) int {
	v, err := strconv.Atoi(c.of[column])
	if (err != nil || v < least) && *c.err == nil {
		*c.err = fmt.Errorf("%s %q is not a whole number of at least %d", column, c.of[column], least)
	}
	return v
}

// measurement returns the columns common to both kinds of tables.
func (c cells) measurement() measurement {
	m := measurement{}
	m.local, m.step, m.sync = c.number("local_bsz", 1), c.number("step_time", 0), c.number("sync_time", 0)
	if *c.err == nil && (m.step == 0 || m.sync > m.step) {
		*c.err = fmt.Errorf("step_time %g is not above 0 and at least sync_time %g", m.step, m.sync)
	}
	return m
}

// readTable calls row for each row of a CSV file with these columns.
func readTable(root fs.FS, file string, columns []string, row func(cells) error) error {
	f, err := root.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.ReuseRecord = true
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: the file is empty", file)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	at := make([]int, len(columns))
	for i, name := range columns {
		if at[i] = slices.Index(header, name); at[i] < 0 {
			return fmt.Errorf("%s: no column %s", file, name)
		}
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		c := cells{of: map[string]string{}, err: new(error)}
		for i, name := range columns {
			c.of[name] = record[at[i]]
		}
		if err := row(c); err != nil {
			line, _ := r.FieldPos(0)
			return fmt.Errorf("%s:%d: %w", file, line, err)
		}
	}
}
