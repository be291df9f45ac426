package ones

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/loss"
)

// onesFeatures are what progress is told by: of a job that has processed Y samples
// and has epochs of D samples
//
//	ln D, ln(1 + Y/D), 1 - l, ln(1 + e)
//
//	l  its loss, as a share of that of the beginning
//	e  epochs that are left of it by a curve fitted to its losses, see epochsLeft
//
// Source: ONES's artifact has ln D, the loss of the beginning, Y/D, 1 - l and the
// accuracy of validation. Here losses are relative to the beginning, and how far a
// job is from its owner's criterion stands for the accuracy.
type onesFeatures [4]float64

// onesRecord is a job after an epoch.
type onesRecord struct {
	x      onesFeatures
	epochs float64 // Y/D
	left   float64 // e
}

// recordOf returns the record of a job with such losses, of which one at least was
// logged.
func recordOf(l *scheduler.Losses, batch int, epochs float64) onesRecord {
	n := float64(len(l.Values))
	left := epochsLeft(l) * epochs / n // as many samples an epoch as till now
	return onesRecord{onesFeatures{math.Log(l.Every * float64(batch)), math.Log1p(epochs), 1 - l.Values[len(l.Values)-1], math.Log1p(left)}, epochs, left}
}

// mostAhead bounds the epochs a job is taken to have left, in epochs it has trained:
// a curve that hardly falls converges at any time.
const mostAhead = 10

// epochsLeft returns after how many epochs more a job with such losses is done by the
// curve that is fitted to them, half an epoch at least; as many as there were where
// they fit none.
func epochsLeft(l *scheduler.Losses) float64 {
	n := float64(len(l.Values))
	curve, ok := loss.Fit(l.Values)
	if !ok {
		return n
	}
	return min(max(curve.Converged(l.Least)-n, 0.5), mostAhead*n)
}

// onesProgress learns from jobs that ended what part of its samples a job has
// processed:
//
//	rho ~ Beta(Y/D, beta)    beta = 1 + e * exp(MLP(x))
//
// with one layer of 64 units, tanh. As the mean of that is Y/D / (Y/D + beta), beta
// is about the epochs that are left: e by the curve alone, where the net says by how
// much such curves are wrong, nothing as long as no job has ended. Whenever one ends,
// Adam makes a few passes over what is known of all of them, for the least
// -ln p(rho).
//
// Source: the artifact of ONES. There beta is 1 + ReLU(MLP(x)), which cannot learn
// once it is 1, begins anew each time with 60 passes at a rate of 1e-4, and knows 590
// records of jobs that ended before.
type onesProgress struct {
	rng     *rand.Rand
	records []onesRecord
	rho     []float64
	next    int // record to be replaced

	mean, scale onesFeatures // of the features
	net         onesNet
	adam        onesAdam
}

const (
	onesHidden  = 64
	onesRecords = 2000 // kept at most
	onesPasses  = 2
	onesBatch   = 8
	onesRate    = 3e-3
	onesDecay   = 1e-4 // of weights
)

func newOnesProgress(rng *rand.Rand) *onesProgress {
	p := &onesProgress{rng: rng}
	for i := range onesHidden {
		for k := range p.net.in[i] {
			p.net.in[i][k] = rng.NormFloat64() / 2
		}
	}
	return p
}

// learn takes in the records of a job that ended after so many epochs.
func (p *onesProgress) learn(records []onesRecord, epochs float64) {
	for _, r := range records {
		rho := r.epochs / epochs
		if !(rho > 0 && rho < 1) {
			continue
		}
		if len(p.records) < onesRecords {
			p.records, p.rho = append(p.records, r), append(p.rho, rho)
			continue
		}
		p.records[p.next], p.rho[p.next] = r, rho
		p.next = (p.next + 1) % onesRecords
	}
	if len(p.records) > 0 {
		p.standardize()
		p.train()
	}
}

// standardize works out mean and standard deviation of the features.
func (p *onesProgress) standardize() {
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

// train makes passes over the records, in an order of their own each.
func (p *onesProgress) train() {
	var gradient onesNet
	for range onesPasses {
		inBatch := 0
		for _, i := range p.rng.Perm(len(p.records)) {
			p.net.addGradient(&gradient, p.input(&p.records[i]), &p.records[i], p.rho[i])
			if inBatch++; inBatch == onesBatch {
				p.adam.step(&p.net, &gradient, inBatch)
				inBatch = 0
			}
		}
		if inBatch > 0 {
			p.adam.step(&p.net, &gradient, inBatch)
		}
	}
}

// input is the features of r as the net is given them, and 1.
func (p *onesProgress) input(r *onesRecord) (x onesInput) {
	for k, v := range r.x {
		x[k] = min(max((v-p.mean[k])*p.scale[k], -5), 5)
	}
	x[len(x)-1] = 1
	return x
}

// of returns the distribution of rho of a job.
func (p *onesProgress) of(r *onesRecord) distuv.Beta {
	x := p.input(r)
	z, _ := p.net.forward(&x)
	return distuv.Beta{Alpha: r.epochs, Beta: 1 + r.left*math.Exp(z), Src: p.rng}
}

// onesInput is standardized features and a 1.
type onesInput [len(onesFeatures{}) + 1]float64

// onesNet is the weights of a net of one hidden layer, or what is to be changed of
// them.
type onesNet struct {
	in   [onesHidden]onesInput
	out  [onesHidden]float64
	bias float64
}

// forward returns what the net says, and its hidden layer.
func (n *onesNet) forward(x *onesInput) (z float64, hidden [onesHidden]float64) {
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
func (n *onesNet) addGradient(g *onesNet, x onesInput, r *onesRecord, rho float64) {
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

// onesAdam is the state of Adam (Kingma and Ba, "Adam: A method for stochastic
// optimization", ICLR 2015) with its betas.
type onesAdam struct {
	m, v   onesNet
	b1, b2 float64 // powers of the betas
}

// step goes along the mean of gradients, a sum over so many, and clears it.
func (a *onesAdam) step(n, sum *onesNet, many int) {
	const beta1, beta2, epsilon = 0.9, 0.999, 1e-8
	if a.b1 == 0 {
		a.b1, a.b2 = 1, 1
	}
	a.b1, a.b2 = a.b1*beta1, a.b2*beta2
	each := 1 / float64(many)
	update := func(w, g, m, v *float64) {
		d := *g*each + onesDecay**w
		*m = beta1**m + (1-beta1)*d
		*v = beta2**v + (1-beta2)*d*d
		*w -= onesRate * (*m / (1 - a.b1)) / (math.Sqrt(*v/(1-a.b2)) + epsilon)
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
