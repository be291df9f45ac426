package synthetic

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// Size is a number of devices and its frequency relative to the other sizes.
type Size struct {
	Devices int
	Share   float64
	// Seconds are the run times of the size: quantiles at evenly spaced probabilities from 0 to 1,
	// at least two, ascending and positive, with logarithms interpolated between them. Nil =
	// log-normal by the options.
	Seconds []float64
}

// Options configure Workload. The zero value is valid.
type Options struct {
	Seed    uint64
	Jobs    int          // 0 = 100
	PerHour float64      // mean arrivals; 0 = 20
	Models  []spec.Model // drawn uniformly; nil = jobs without a model

	// Arrivals are a Poisson process unless one of these is set; the rate is the product of the
	// first two.
	Hours  []float64 // relative rates of equal parts of every day, from its beginning
	Burst  Burst
	AtOnce bool // all jobs are submitted at time 0

	// Load is the device-seconds per second and device that the jobs ask for on LoadDevices
	// devices. It sets the arrival rate from the jobs drawn; 0 = PerHour. See SetLoad.
	Load, LoadDevices float64

	Sizes []Size // nil = DefaultSizes

	// Run times at the requested size have this distribution and median, at least 1 s and at most
	// MaxSec.
	Durations Durations // "" = LogNormal
	MedianSec float64   // 0 = 1800
	Sigma     float64   // standard deviation of the logarithm of log-normal times; 0 = 1.2
	Alpha     float64   // tail exponent of Pareto times, above 1; 0 = 1.5
	MaxSec    float64   // 0 = 86400
	Seconds   []float64 // run times of sizes without their own, as Size.Seconds; nil = Durations

	// TimeScale multiplies all times and steps at the end; 0 = 1.
	TimeScale float64

	GlobalBatch     int     // samples per step, 0 = that of the plan
	GuaranteedShare float64 // share of guaranteed jobs, 0..1
	Tenants         int     // jobs belong to tenants "t1", "t2", ...; 0 = none
	// Deadlines are drawn uniformly from a range of multiples of the run time, after submission
	// (Gu et al., ElasticFlow, ASPLOS 2023, draw from 0.5 to 1.5); zero = none.
	Deadlines Range

	// Plan returns the plan that a user would choose for a model on a number of devices, and its
	// step time in seconds. It returns false if the model does not fit; the job then asks for the
	// next larger size, and is left out if there is none. Nil = no plan, and work given as a
	// duration. It is called once for each size tried, in order of the jobs.
	Plan func(m spec.Model, devices int) (p spec.Plan, stepSec float64, ok bool)
	// Fits limits the models drawn for a size to those for which it is true, if there are any.
	// Nil = all.
	Fits func(m spec.Model, devices int) bool
}

// Durations is a distribution of run times.
type Durations string

const (
	LogNormal Durations = "log-normal" // by MedianSec and Sigma
	Pareto    Durations = "pareto"     // by MedianSec and Alpha: P(X > x) = (l/x)^Alpha above the least time l
	Uniform   Durations = "uniform"    // from 0 to twice MedianSec
)

// Range is the numbers from Min to Max.
type Range struct{ Min, Max float64 }

// DefaultSizes are typical of clusters: half of the jobs are small, few are large. (Round numbers;
// Jeon et al., ATC 2019, section 2 has the shape.)
var DefaultSizes = []Size{
	{Devices: 1, Share: 0.4}, {Devices: 2, Share: 0.2}, {Devices: 4, Share: 0.2}, {Devices: 8, Share: 0.15}, {Devices: 16, Share: 0.05},
}

// SmallSizes and LargeSizes are two extremes. (Round numbers.)
var (
	SmallSizes = []Size{{Devices: 1, Share: 0.5}, {Devices: 2, Share: 0.3}, {Devices: 4, Share: 0.2}}
	LargeSizes = []Size{{Devices: 8, Share: 0.4}, {Devices: 16, Share: 0.3}, {Devices: 32, Share: 0.3}}
)

// BloxSizes are those of Blox's simulator with jobs on several GPUs: 1, 2, 4 and 8. Four in five
// run for 60 s x 10^U(1.5, 3), the others for 60 s x 10^U(3, 4), whatever their size
// (msr-fiddle/blox at commit c8851b2, after Gavel's).
func BloxSizes() []Size {
	seconds := make([]float64, 6) // knots at 0, 0.2, ... 1
	for i := range seconds {
		seconds[i] = 60 * math.Pow(10, 1.5+1.5*float64(i)/4)
	}
	seconds[5] = 60 * math.Pow(10, 4)
	return []Size{
		{Devices: 1, Share: 0.7, Seconds: seconds}, {Devices: 2, Share: 0.1, Seconds: seconds},
		{Devices: 4, Share: 0.15, Seconds: seconds}, {Devices: 8, Share: 0.05, Seconds: seconds},
	}
}

func (o Options) withDefaults() Options {
	if o.Sizes == nil {
		o.Sizes = DefaultSizes
	}
	o.Jobs = cmp.Or(o.Jobs, 100)
	o.PerHour = cmp.Or(o.PerHour, 20)
	o.MedianSec = cmp.Or(o.MedianSec, 1800)
	o.Sigma = cmp.Or(o.Sigma, 1.2)
	o.MaxSec = cmp.Or(o.MaxSec, 86400)
	o.Durations = cmp.Or(o.Durations, LogNormal)
	o.Alpha = cmp.Or(o.Alpha, 1.5)
	o.TimeScale = cmp.Or(o.TimeScale, 1)
	return o
}

// Validate returns an error for the first invalid option.
func (o Options) Validate() error {
	o = o.withDefaults()
	positive := func(v float64) bool { return v > 0 && !math.IsInf(v, 0) }
	switch {
	case len(o.Models) == 0 && o.Plan != nil:
		return fmt.Errorf("synthetic: no models to choose from for plans")
	case o.Jobs < 0 || o.Jobs > 1<<24:
		return fmt.Errorf("synthetic: %d jobs, want 1..%d", o.Jobs, 1<<24)
	case !positive(o.PerHour) || !positive(o.MedianSec) || !positive(o.Sigma) || !positive(o.MaxSec):
		return fmt.Errorf("synthetic: arrivals %g/h, median %g s, sigma %g and maximum %g s must be positive and finite",
			o.PerHour, o.MedianSec, o.Sigma, o.MaxSec)
	case !slices.Contains([]Durations{LogNormal, Pareto, Uniform}, o.Durations):
		return fmt.Errorf("synthetic: run times %q are not %s, %s or %s", o.Durations, LogNormal, Pareto, Uniform)
	case !(o.Alpha > 1) || math.IsInf(o.Alpha, 0):
		return fmt.Errorf("synthetic: tail exponent %g must be above 1 and finite: the mean is infinite otherwise", o.Alpha)
	case !(o.TimeScale >= 1e-3 && o.TimeScale <= 1e3):
		return fmt.Errorf("synthetic: time scale %g is not in 0.001..1000", o.TimeScale)
	case o.Load != 0 && !(positive(o.Load) && positive(o.LoadDevices)):
		return fmt.Errorf("synthetic: load %g on %g devices, both must be positive and finite", o.Load, o.LoadDevices)
	case o.Load != 0 && o.AtOnce:
		return fmt.Errorf("synthetic: jobs that arrive at once have no load: leave it out")
	case !(o.GuaranteedShare >= 0 && o.GuaranteedShare <= 1):
		return fmt.Errorf("synthetic: share %g of guaranteed jobs is not in 0..1", o.GuaranteedShare)
	case o.Deadlines != (Range{}) && !(o.Deadlines.Min > 0 && o.Deadlines.Min <= o.Deadlines.Max && o.Deadlines.Max <= maxTightness):
		return fmt.Errorf("synthetic: deadlines after %g to %g run times, want ascending numbers in (0, %d]", o.Deadlines.Min, o.Deadlines.Max, maxTightness)
	case o.Tenants < 0:
		return fmt.Errorf("synthetic: %d tenants", o.Tenants)
	case float64(o.Jobs)/o.PerHour*3600 > maxSeconds || o.MaxSec > maxSeconds:
		return fmt.Errorf("synthetic: %d jobs at %g/h of up to %g s last longer than %g s", o.Jobs, o.PerHour, o.MaxSec, float64(maxSeconds))
	}
	if err := o.Burst.validate(); err != nil {
		return err
	}
	if err := validateHours(o.Hours); err != nil {
		return err
	}
	if err := (Size{Seconds: o.Seconds}).validate(); err != nil {
		return err
	}
	for i, s := range o.Sizes {
		if err := s.validate(); err != nil {
			return err
		}
		if s.Devices < 1 || !positive(s.Share) || i > 0 && s.Devices <= o.Sizes[i-1].Devices {
			return fmt.Errorf("synthetic: size %d devices with share %g: sizes must ascend from 1, shares be positive", s.Devices, s.Share)
		}
	}
	return nil
}

// validate returns an error for invalid quantiles.
func (s Size) validate() error {
	for i, v := range s.Seconds {
		if !(v > 0 && v <= maxSeconds) || i > 0 && v < s.Seconds[i-1] {
			return fmt.Errorf("synthetic: quantile %g s of the run times on %d devices: they must ascend within 0..%g s", v, s.Devices, float64(maxSeconds))
		}
	}
	if len(s.Seconds) == 1 {
		return fmt.Errorf("synthetic: a single quantile of the run times on %d devices, want at least two", s.Devices)
	}
	return nil
}

// maxTightness bounds deadlines, in run times.
const maxTightness = 1000000

// maxSeconds keeps times well within a time.Duration.
const maxSeconds = 1e9

// Workload returns the jobs of o by submission, with IDs "job-0001" and on. The
// same options give the same jobs; more Jobs give the same first ones, unless Load is set.
func Workload(o Options) ([]spec.Job, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	jobs, numbers := o.draw()
	if o.Load > 0 {
		o.PerHour = o.loadedRate(jobs)
	}
	return jobs, o.submit(jobs, numbers)
}

// draw returns jobs without their submission, and the number of each among those drawn.
func (o Options) draw() (jobs []spec.Job, numbers []int) {
	models, sizes := stats.Stream(o.Seed, "models"), stats.Stream(o.Seed, "sizes")
	durations, classes, tenants := stats.Stream(o.Seed, "durations"), stats.Stream(o.Seed, "classes"), stats.Stream(o.Seed, "tenants")
	deadlines := stats.Stream(o.Seed, "deadlines")
	for i := range o.Jobs {
		j := spec.Job{
			ID:          spec.JobID(fmt.Sprintf("job-%04d", i+1)),
			GlobalBatch: o.GlobalBatch,
			Guaranteed:  classes.Float64() < o.GuaranteedShare,
		}
		size := pick(o.Sizes, sizes.Float64())
		if len(o.Models) > 0 {
			fit := o.fitting(o.Sizes[size].Devices)
			j.Model = fit[models.IntN(len(fit))]
		}
		sec := o.runSec(o.Sizes[size], durations.NormFloat64())
		if t := tenants.Float64(); o.Tenants > 0 {
			j.Tenant = fmt.Sprintf("t%d", 1+int(t*float64(o.Tenants)))
		}
		tightness := o.Deadlines.Min + (o.Deadlines.Max-o.Deadlines.Min)*deadlines.Float64()
		if o.work(&j, size, sec) {
			if o.Deadlines != (Range{}) {
				j.Deadline = seconds(tightness * j.Duration.Seconds()) // after its submission, which follows
			}
			jobs, numbers = append(jobs, j), append(numbers, i)
		}
	}
	return jobs, numbers
}

// fitting returns the models to draw from for a size.
func (o Options) fitting(devices int) []spec.Model {
	if o.Fits == nil {
		return o.Models
	}
	var out []spec.Model
	for _, m := range o.Models {
		if o.Fits(m, devices) {
			out = append(out, m)
		}
	}
	if out == nil {
		return o.Models
	}
	return out
}

// loadedRate returns the arrivals per hour, of jobs that are left out too, at which jobs ask for
// Load.
func (o Options) loadedRate(jobs []spec.Job) float64 {
	work := 0.0
	for i := range jobs {
		work += float64(jobs[i].Devices) * jobs[i].Duration.Seconds()
	}
	if work == 0 {
		return o.PerHour
	}
	return o.Load * o.LoadDevices * 3600 * float64(o.Jobs) / work
}

// submit sets the submissions of jobs, and scales their times. numbers are those among the
// jobs drawn: a job that was left out has its arrival too.
func (o Options) submit(jobs []spec.Job, numbers []int) error {
	arrivals, rates := stats.Stream(o.Seed, "arrivals"), o.rates()
	at, drawn := 0.0, 0
	for k := range jobs {
		for ; drawn <= numbers[k] && !o.AtOnce; drawn++ {
			if at = next(at, arrivals.ExpFloat64()*3600/o.PerHour, rates); at >= maxSeconds {
				return fmt.Errorf("synthetic: job %d of %d would be submitted after more than %g s", drawn+1, o.Jobs, float64(maxSeconds))
			}
		}
		j := &jobs[k]
		j.Submit = seconds(at * o.TimeScale)
		if o.TimeScale != 1 {
			j.Steps *= o.TimeScale
			j.Duration = seconds(j.Duration.Seconds() * o.TimeScale)
		}
		if j.Deadline > 0 {
			j.Deadline = j.Submit + seconds(j.Deadline.Seconds()*o.TimeScale)
		}
	}
	return nil
}

// rates are the factors of the arrival rate.
func (o Options) rates() []rate {
	var out []rate
	if o.Hours != nil {
		out = append(out, newDay(o.Hours))
	}
	if o.Burst != (Burst{}) {
		out = append(out, newBurstRate(o.Burst, stats.Stream(o.Seed, "bursts")))
	}
	return out
}

// runSec returns the run time of a job of a size for a standard normal z.
func (o Options) runSec(s Size, z float64) float64 {
	knots := s.Seconds
	if knots == nil {
		knots = o.Seconds
	}
	if knots == nil {
		return math.Min(math.Max(o.quantile(z), 1), o.MaxSec)
	}
	u := math.Erfc(-z/math.Sqrt2) / 2 * float64(len(knots)-1)
	k := min(int(u), len(knots)-2)
	a, b := math.Log(knots[k]), math.Log(knots[k+1])
	return math.Exp(a + (u-float64(k))*(b-a))
}

// quantile returns the run time, in seconds, that is as likely exceeded as a standard normal z.
func (o Options) quantile(z float64) float64 {
	switch above := math.Erfc(z/math.Sqrt2) / 2; o.Durations {
	case Pareto:
		return o.MedianSec * math.Pow(2*above, -1/o.Alpha)
	case Uniform:
		return 2 * o.MedianSec * (1 - above)
	}
	return o.MedianSec * math.Exp(o.Sigma*z)
}

func seconds(s float64) time.Duration {
	return time.Duration(math.Min(s, maxSeconds) * float64(time.Second)).Round(time.Millisecond)
}

// pick returns the index of the size for u in [0, 1).
func pick(sizes []Size, u float64) int {
	total := 0.0
	for _, s := range sizes {
		total += s.Share
	}
	for i, s := range sizes {
		if u -= s.Share / total; u < 0 {
			return i
		}
	}
	return len(sizes) - 1
}

// work sets devices, plan and work of a job: sec at its size. It returns false if no size runs the
// model.
func (o Options) work(j *spec.Job, size int, sec float64) bool {
	if o.Plan == nil {
		j.Devices, j.Duration = o.Sizes[size].Devices, seconds(sec)
		return true
	}
	for _, s := range o.Sizes[size:] {
		p, stepSec, ok := o.Plan(j.Model, s.Devices)
		if !ok || !(stepSec > 0) {
			continue
		}
		j.Devices, j.Plan = s.Devices, p
		j.Steps = math.Max(math.Round(sec/stepSec), 1)
		j.Duration = seconds(j.Steps * stepSec)
		return true
	}
	return false
}
