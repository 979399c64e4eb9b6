package specfile

import (
	"github.com/runteam/runteam/llm"
)

// readPrices reads the prices of models. If two files have one for a model, the first
// file counts.
func (r *reader) readPrices() {
	for _, y := range r.places.layers {
		n := y.spec.own("prices")
		for _, item := range n.parts() {
			model := item.key
			r.subject = func() string { return "prices: " + quote(model) + ": " }
			f := r.fields(item, "price", nil)
			if f == nil {
				continue
			}
			prices := r.file.Config.Prices
			if _, twice := prices[model]; twice {
				r.warnKey(item, "keep one of them", "not used: another file has a price for it too")
				continue
			}
			if prices == nil {
				prices = make(map[string]llm.Price)
				r.file.Config.Prices = prices
			}
			p := llm.Price{}
			members{{"input", &p.Input}, {"output", &p.Output}, {"cachedInput", &p.CachedInput}, {"reasoning", &p.Reasoning}}.read(f.own)
			prices[model] = p
		}
	}
	r.subject = nil
}

// amount returns a number; nil is zero.
func amount(n *node) float64 {
	if n == nil {
		return 0
	}
	f, _ := n.float()
	return f
}

// The bounds of a cost budget, in US dollars. A larger budget is probably in another unit.
const (
	minBudget = 0.000001
	maxBudget = 1_000_000
)

// checkPrices warns about prices of models that no agent has.
func (r *reader) checkPrices() {
	asked := make(map[string]bool)
	r.file.eachConnection(func(c *Connection) { asked[c.Model] = true })
	r.priceWritten()
	var known []string
	for _, model := range sortedKeys(asked) {
		if model != "" {
			known = append(known, model)
		}
	}
	for _, y := range r.places.layers {
		n := y.spec.own("prices")
		for _, item := range n.parts() {
			model := item.key
			if asked[model] && model != "" {
				continue
			}
			hint := nearHint(model, "remove it, or write the name of a model that an agent has", known...)
			r.warnKey(item, hint, "prices: no agent has the model %s", quote(model))
		}
	}
}

// priceWritten adds the price of a model that a variable names under the name that runs
// record.
func (r *reader) priceWritten() {
	r.file.eachConnection(func(c *Connection) {
		if p, ok := r.file.Config.Prices[c.Model]; ok {
			r.file.Config.Prices[c.ModelAsWritten()] = p
		}
	})
}

// Unpriced returns the names of the models that agents or the coordinator may call and that have no price, sorted. A model
// without a name, which is the default of its endpoint, is "".
func (f *File) Unpriced() []string {
	found := make(map[string]bool)
	f.eachConnection(func(c *Connection) {
		if _, priced := f.Config.Prices[c.ModelAsWritten()]; !priced {
			found[c.ModelAsWritten()] = true
		}
	})
	return sortedKeys(found)
}

// eachConnection calls do for the connections of all agents and of the
// coordinator, and for those of their fallback.
func (f *File) eachConnection(do func(*Connection)) {
	all := func(c *Connection) {
		do(c)
		for i := range c.Fallback {
			do(&c.Fallback[i])
		}
	}
	for i := range f.Agents {
		if f.Agents[i].HasModel() {
			all(&f.Agents[i].Connection)
		}
	}
	if c := f.Coordinator; c != nil {
		all(&c.Connection)
	}
}
