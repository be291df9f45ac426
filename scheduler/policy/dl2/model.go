package dl2

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/scheduler/internal/nn"
)

// Model is what policy dl2 is made of: networks, and what they were trained for.
type Model struct {
	Form
	Origin map[string]string // how it was trained, for people

	Policy nn.Net // state -> preference for each action
	Value  nn.Net // state -> return to be expected; nil = was not kept
}

// Form is what a network is trained for: it decides about nothing else.
type Form struct {
	Jobs    int      `json:"jobs"`    // columns of the state, each a job
	Types   []string `json:"types"`   // models, each an input of a column
	Servers bool     `json:"servers"` // whether jobs train with parameter servers
	// Dense says that one network sees all columns at once, as in DL2; else each column
	// is seen by the same one, with what all come to.
	Dense   bool    `json:"dense"`
	Speeds  bool    `json:"speeds"` // whether a column tells what is believed of the job's speed
	SlotSec float64 `json:"slot_s"` // seconds from one decision about running jobs to the next
}

// What a network cannot be used for wraps one of these.
var (
	ErrOtherForm = errors.New("the policy was trained for something else")
	ErrNoPolicy  = errors.New("not a trained dl2 policy")
)

// NewModel returns networks that know nothing yet, of two hidden layers of so many
// units, drawn from a seed.
func NewModel(f Form, hidden int, seed uint64) (*Model, error) {
	m := &Model{Form: f, Origin: map[string]string{}}
	if err := f.Validate(); err != nil {
		return nil, err
	}
	for name, to := range map[string]*nn.Net{"policy": &m.Policy, "value": &m.Value} {
		in, out := f.core(name)
		net, err := nn.NewMLP(namedStream(seed, "dl2/"+name), in, hidden, hidden, out)
		if err == nil {
			*to, err = f.net(name, net)
		}
		if err != nil {
			return nil, fmt.Errorf("policy: dl2: %w", err)
		}
	}
	return m, nil
}

// pooled is what sums over columns are divided by: about how many jobs there are.
const pooled = 8

// outputs returns for how many actions of a column, and of all, a network answers.
func (f Form) outputs(name string) (kinds, all int) {
	if name == "value" {
		return 0, 1
	}
	return f.kinds(), f.Actions()
}

// core returns the inputs and outputs of the perceptron of a network.
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

// net makes a network of its perceptron.
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

// Validate reports what no network can be trained for.
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

// kinds returns how many actions there are for a column.
func (f Form) kinds() int {
	if f.Servers {
		return 3
	}
	return 1
}

// Actions returns how many actions there are: those of each column together, then the
// one that ends the slot.
func (f Form) Actions() int { return f.kinds()*f.Jobs + 1 }

// column returns the inputs of a column, see dl2State.
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

// Inputs returns how many numbers a state is.
func (f Form) Inputs() int { return f.Jobs*f.column() + 1 }

// Same reports in what other differs from f, as an error that wraps ErrOtherForm.
func (f Form) Same(other Form) error {
	list := func(types []string) string { return strings.Join(types, ", ") }
	differs := func(what string, has, wants any) error {
		return fmt.Errorf("policy: dl2: it was trained for %s %v, asked for is %v: %w", what, has, wants, ErrOtherForm)
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
		return differs("believed speeds in the state", f.Speeds, other.Speeds)
	case f.SlotSec != other.SlotSec:
		return differs("slots of seconds", f.SlotSec, other.SlotSec)
	}
	return nil
}

// dl2Meta is what a file holds beside the networks.
type dl2Meta struct {
	Policy string `json:"policy"`
	Form
	Origin map[string]string `json:"origin,omitempty"`
}

// Encode returns m as a file. With half it keeps what policy dl2 needs, in half
// precision: nothing to go on training from.
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

// Clone returns a model with networks of its own, both of which m has.
func (m *Model) Clone() (*Model, error) {
	b, err := m.Encode(false)
	if err != nil {
		return nil, err
	}
	return DecodeDL2(b)
}

// Read reads a trained policy from a file; "" is the one that comes with Pacer.
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
