package ones

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/loss"
)

// features are the input of the progress model for a job that has processed Y samples and
// has epochs of D samples:
//
//	ln D, ln(1 + Y/D), 1 - l, ln(1 + e)
//
//	l  its loss, divided by its initial loss
//	e  remaining epochs by a curve fitted to its losses, see epochsLeft
//
// Source: ONES's artifact uses ln D, the initial loss, Y/D, 1 - l and the validation
// accuracy. Here losses are relative to the initial one, and e replaces the accuracy.
type features [4]float64

// record is the state of a job after an epoch.
type record struct {
	x      features
	epochs float64 // Y/D
	left   float64 // e
}

// recordOf returns the record of a job with at least one logged loss.
func recordOf(l *scheduler.Losses, batch int, epochs float64) record {
	n := float64(len(l.Values))
	left := epochsLeft(l) * epochs / n // assuming the average batch so far
	return record{features{math.Log(l.Every * float64(batch)), math.Log1p(epochs), 1 - l.Values[len(l.Values)-1], math.Log1p(left)}, epochs, left}
}

// maxRemainingFactor bounds the remaining epochs of a job, as a multiple of the epochs it
// has trained: the fit of a flat curve can converge at any time.
const maxRemainingFactor = 10

// epochsLeft returns the remaining epochs of a job until the curve fitted to its losses
// converges, at least half an epoch. Without a fit it returns the epochs so far.
func epochsLeft(l *scheduler.Losses) float64 {
	n := float64(len(l.Values))
	curve, ok := loss.Fit(l.Values)
	if !ok {
		return n
	}
	return min(max(curve.Converged(l.Least)-n, 0.5), maxRemainingFactor*n)
}

// progressModel estimates rho, the fraction of its samples that a job has processed. It is
// trained with the jobs that ended:
//
//	rho ~ Beta(Y/D, beta)    beta = 1 + e * exp(MLP(x))
//
// MLP has one hidden layer of 64 tanh units. The mean of the distribution is
// Y/D / (Y/D + beta), so beta is about the remaining epochs: e from the curve, corrected by
// the network, which returns 0 until a job has ended. When a job ends, Adam makes a few
// passes over all records to minimise -ln p(rho).
//
// Source: the artifact of ONES. There beta is 1 + ReLU(MLP(x)), which cannot learn once it
// is 1. It is trained from scratch each time, 60 passes at a learning rate of 1e-4, and
// starts with 590 records of earlier jobs.
type progressModel struct {
	rng     *rand.Rand
	records []record
	rho     []float64
	next    int // index of the record to replace next

	mean, scale features // of the features
	net         network
	adam        adamState
}

const (
	hiddenUnits = 64
	maxRecords  = 2000 // the oldest are replaced
	trainPasses = 2
	trainBatch  = 8
	adamRate    = 3e-3
	weightDecay = 1e-4
)

func newProgressModel(rng *rand.Rand) *progressModel {
	p := &progressModel{rng: rng}
	for i := range hiddenUnits {
		for k := range p.net.in[i] {
			p.net.in[i][k] = rng.NormFloat64() / 2
		}
	}
	return p
}

// learn adds the records of a job that ended after a number of epochs, and trains.
func (p *progressModel) learn(records []record, epochs float64) {
	for _, r := range records {
		rho := r.epochs / epochs
		if !(rho > 0 && rho < 1) {
			continue
		}
		if len(p.records) < maxRecords {
			p.records, p.rho = append(p.records, r), append(p.rho, rho)
			continue
		}
		p.records[p.next], p.rho[p.next] = r, rho
		p.next = (p.next + 1) % maxRecords
	}
	if len(p.records) > 0 {
		p.standardize()
		p.train()
	}
}

// standardize computes mean and inverse standard deviation of the features.
func (p *progressModel) standardize() {
	n := float64(len(p.records))
	for k := range p.mean {
		sum, squares := 0.0, 0.0
		for i := range p.records {
			sum += p.records[i].x[k]
		}
		p.mean[k] = sum / n
		for i := range p.records {
			d := p.records[i].x[k] - p.mean[k]
			squares += d * d
		}
		p.scale[k] = 1 / max(math.Sqrt(squares/n), 0.1)
	}
}

// train makes passes over the records, each in random order.
func (p *progressModel) train() {
	var gradient network
	for range trainPasses {
		inBatch := 0
		for _, i := range p.rng.Perm(len(p.records)) {
			p.net.addGradient(&gradient, p.input(&p.records[i]), &p.records[i], p.rho[i])
			if inBatch++; inBatch == trainBatch {
				p.adam.step(&p.net, &gradient, inBatch)
				inBatch = 0
			}
		}
		if inBatch > 0 {
			p.adam.step(&p.net, &gradient, inBatch)
		}
	}
}

// input returns the standardized features of r and a constant 1.
func (p *progressModel) input(r *record) (x netInput) {
	for k, v := range r.x {
		x[k] = min(max((v-p.mean[k])*p.scale[k], -5), 5)
	}
	x[len(x)-1] = 1
	return x
}

// of returns the distribution of rho for a record.
func (p *progressModel) of(r *record) distuv.Beta {
	x := p.input(r)
	z, _ := p.net.forward(&x)
	return distuv.Beta{Alpha: r.epochs, Beta: 1 + r.left*math.Exp(z), Src: p.rng}
}

// netInput is the standardized features and a constant 1.
type netInput [len(features{}) + 1]float64

// network has the weights of a network with one hidden layer, or their gradient.
type network struct {
	in   [hiddenUnits]netInput
	out  [hiddenUnits]float64
	bias float64
}

// forward returns the output and the hidden layer.
func (n *network) forward(x *netInput) (z float64, hidden [hiddenUnits]float64) {
	z = n.bias
	for i := range n.in {
		sum := 0.0
		for k, v := range x {
			sum += n.in[i][k] * v
		}
		hidden[i] = math.Tanh(sum)
		z += n.out[i] * hidden[i]
	}
	return z, hidden
}

// addGradient adds the gradient of -ln Beta(rho; Y/D, 1 + e*exp(z)).
func (n *network) addGradient(g *network, x netInput, r *record, rho float64) {
	z, hidden := n.forward(&x)
	more := r.left * math.Exp(z)
	d := (mathext.Digamma(1+more) - mathext.Digamma(r.epochs+1+more) - math.Log1p(-rho)) * more
	g.bias += d
	for i, h := range hidden {
		g.out[i] += d * h
		back := d * n.out[i] * (1 - h*h)
		for k, v := range x {
			g.in[i][k] += back * v
		}
	}
}

// adamState is the state of Adam (Kingma and Ba, "Adam: A method for stochastic
// optimization", ICLR 2015) with its betas.
type adamState struct {
	m, v   network
	b1, b2 float64 // powers of the betas
}

// step updates the weights by the mean gradient, sum/many, and clears sum.
func (a *adamState) step(n, sum *network, many int) {
	const beta1, beta2, epsilon = 0.9, 0.999, 1e-8
	if a.b1 == 0 {
		a.b1, a.b2 = 1, 1
	}
	a.b1, a.b2 = a.b1*beta1, a.b2*beta2
	each := 1 / float64(many)
	update := func(w, g, m, v *float64) {
		d := *g*each + weightDecay**w
		*m = beta1**m + (1-beta1)*d
		*v = beta2**v + (1-beta2)*d*d
		*w -= adamRate * (*m / (1 - a.b1)) / (math.Sqrt(*v/(1-a.b2)) + epsilon)
		*g = 0
	}
	for i := range n.in {
		for k := range n.in[i] {
			update(&n.in[i][k], &sum.in[i][k], &a.m.in[i][k], &a.v.in[i][k])
		}
		update(&n.out[i], &sum.out[i], &a.m.out[i], &a.v.out[i])
	}
	update(&n.bias, &sum.bias, &a.m.bias, &a.v.bias)
}
