package dl2

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/scheduler/internal/nn"
)

// Model has the networks of policy dl2 and the form they were trained for.
type Model struct {
	Form
	Origin map[string]string // how it was trained, for information

	Policy nn.Net // state -> preference for each action
	Value  nn.Net // state to expected return; nil = not stored
}

// Form is what a network was trained for. It is valid for no other form.
type Form struct {
	Jobs    int      `json:"jobs"`    // columns of the state, each a job
	Types   []string `json:"types"`   // models, each an input of a column
	Servers bool     `json:"servers"` // whether jobs train with parameter servers
	// Dense: one network has all columns as input, as in DL2. Otherwise the same network
	// is applied to each column together with a sum over all columns.
	Dense   bool    `json:"dense"`
	Speeds  bool    `json:"speeds"` // whether a column has predicted speeds of the job
	SlotSec float64 `json:"slot_s"` // seconds from one decision about running jobs to the next
}

// Errors of networks that cannot be used wrap one of these.
var (
	ErrOtherForm = errors.New("the policy was trained for something else")
	ErrNoPolicy  = errors.New("not a trained dl2 policy")
)

// NewModel returns untrained networks with two hidden layers of hidden units each, with
// weights drawn from a seed.
func NewModel(f Form, hidden int, seed uint64) (*Model, error) {
	m := &Model{Form: f, Origin: map[string]string{}}
	if err := f.Validate(); err != nil {
		return nil, err
	}
	for name, to := range map[string]*nn.Net{"policy": &m.Policy, "value": &m.Value} {
		in, out := f.core(name)
		net, err := nn.NewMLP(stats.Stream(seed, "dl2/"+name), in, hidden, hidden, out)
		if err == nil {
			*to, err = f.net(name, net)
		}
		if err != nil {
			return nil, fmt.Errorf("policy: dl2: %w", err)
		}
	}
	return m, nil
}

// pooled is the divisor of sums over columns: a typical number of jobs.
const pooled = 8

// outputs returns the outputs of a network per column, and in total.
func (f Form) outputs(name string) (kinds, all int) {
	if name == "value" {
		return 0, 1
	}
	return f.kinds(), f.Actions()
}

// core returns the inputs and outputs of the MLP of a network.
func (f Form) core(name string) (inputs, outputs int) {
	kinds, all := f.outputs(name)
	if f.Dense {
		return f.Inputs(), all
	}
	return f.shared(kinds).Core()
}

func (f Form) shared(kinds int) nn.SharedForm {
	return nn.SharedForm{Columns: f.Jobs, Width: f.column(), Kinds: kinds, Extra: 1, Scale: pooled}
}

// net returns the network of an MLP.
func (f Form) net(name string, m *nn.MLP) (nn.Net, error) {
	kinds, all := f.outputs(name)
	if !f.Dense {
		return nn.NewShared(m, f.shared(kinds))
	}
	if m.Inputs() != f.Inputs() || m.Outputs() != all {
		return nil, fmt.Errorf("%d inputs and %d outputs, %d jobs of %d types take %d and %d", m.Inputs(), m.Outputs(), f.Jobs, len(f.Types), f.Inputs(), all)
	}
	return m, nil
}

// Validate returns an error for a form outside the supported ranges.
func (f Form) Validate() error {
	switch {
	case f.Jobs < 1 || f.Jobs > 1024:
		return fmt.Errorf("policy: dl2: %d jobs at once, want 1..1024", f.Jobs)
	case len(f.Types) < 1 || len(f.Types) > 256:
		return fmt.Errorf("policy: dl2: %d job types, want 1..256", len(f.Types))
	case !slices.IsSorted(f.Types) || len(slices.Compact(slices.Clone(f.Types))) < len(f.Types):
		return fmt.Errorf("policy: dl2: job types %s do not ascend", strings.Join(f.Types, ", "))
	case !(f.SlotSec >= 1 && f.SlotSec <= 1e9):
		return fmt.Errorf("policy: dl2: slots of %g s, want 1..1e9", f.SlotSec)
	}
	return nil
}

// kinds returns the number of actions of a column.
func (f Form) kinds() int {
	if f.Servers {
		return 3
	}
	return 1
}

// Actions returns the number of actions: those of each column, then the void action.
func (f Form) Actions() int { return f.kinds()*f.Jobs + 1 }

// column returns the number of inputs of a column, see View.encode.
func (f Form) column() int {
	n := len(f.Types) + stateInputs
	if f.Speeds {
		n += 1 + f.kinds()
		if f.Servers {
			n += f.kinds()
		}
	}
	return n
}

// Inputs returns the length of a state.
func (f Form) Inputs() int { return f.Jobs*f.column() + 1 }

// Same returns an error that wraps ErrOtherForm and names the difference if other is not f.
func (f Form) Same(other Form) error {
	list := func(types []string) string { return strings.Join(types, ", ") }
	differs := func(what string, has, wants any) error {
		return fmt.Errorf("policy: dl2: the network was trained for %s %v, requested is %v: %w", what, has, wants, ErrOtherForm)
	}
	switch {
	case f.Jobs != other.Jobs:
		return differs("jobs at once", f.Jobs, other.Jobs)
	case !slices.Equal(f.Types, other.Types):
		return differs("job types", list(f.Types), list(other.Types))
	case f.Servers != other.Servers:
		return differs("parameter servers", f.Servers, other.Servers)
	case f.Dense != other.Dense:
		return differs("a dense network", f.Dense, other.Dense)
	case f.Speeds != other.Speeds:
		return differs("predicted speeds in the state", f.Speeds, other.Speeds)
	case f.SlotSec != other.SlotSec:
		return differs("slots of seconds", f.SlotSec, other.SlotSec)
	}
	return nil
}

// dl2Meta is the header of a file.
type dl2Meta struct {
	Policy string `json:"policy"`
	Form
	Origin map[string]string `json:"origin,omitempty"`
}

// Encode returns m as a file. With half it stores only the policy network in half precision,
// enough for policy dl2 but not for further training.
func (m *Model) Encode(half bool) ([]byte, error) {
	nets := []nn.Named{{Name: "policy", Net: m.Policy.Core()}}
	if !half && m.Value != nil {
		nets = append(nets, nn.Named{Name: "value", Net: m.Value.Core()})
	}
	return nn.Encode(dl2Meta{"dl2", m.Form, m.Origin}, half, nets...)
}

// DecodeDL2 reads what Encode returned.
func DecodeDL2(b []byte) (*Model, error) {
	var meta dl2Meta
	nets, err := nn.Decode(b, &meta)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrNoPolicy)
	}
	m := &Model{Form: meta.Form, Origin: meta.Origin}
	if meta.Policy != "dl2" {
		return nil, fmt.Errorf("networks of policy %q: %w", meta.Policy, ErrNoPolicy)
	}
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrNoPolicy)
	}
	for name, to := range map[string]*nn.Net{"policy": &m.Policy, "value": &m.Value} {
		switch {
		case nets[name] != nil:
			if *to, err = m.net(name, nets[name]); err != nil {
				return nil, fmt.Errorf("%s network: %w: %w", name, err, ErrNoPolicy)
			}
		case name == "policy":
			return nil, fmt.Errorf("no policy network: %w", ErrNoPolicy)
		}
	}
	return m, nil
}

// Clone returns a copy of m, which must have both networks.
func (m *Model) Clone() (*Model, error) {
	b, err := m.Encode(false)
	if err != nil {
		return nil, err
	}
	return DecodeDL2(b)
}

// Read reads a trained policy from a file; "" = the one that comes with Pacer.
func Read(path string) (*Model, error) {
	b := embeddedDL2
	if path != "" {
		info, err := os.Stat(path)
		if err == nil && info.Size() > math.MaxInt32 {
			err = fmt.Errorf("%d bytes: %w", info.Size(), ErrNoPolicy)
		}
		if err == nil {
			b, err = os.ReadFile(path)
		}
		if err != nil {
			return nil, fmt.Errorf("policy: dl2: %s: %w", path, err)
		}
	}
	m, err := DecodeDL2(b)
	if err != nil && path != "" {
		err = fmt.Errorf("policy: dl2: %s: %w", path, err)
	}
	return m, err
}

// embeddedDL2 was trained by bench/learned/dl2.sh.
//
//go:embed dl2.bin
var embeddedDL2 []byte
