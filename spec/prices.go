package spec

// readPrices reads what models cost: of the first file that says it of a model.
func (r *reader) readPrices() {
	for _, y := range r.layers {
		n := y.spec.own("prices")
		for i := range n.len() {
			model, item := n.kids.keys[i], &n.kids.nodes[i]
			r.subject = func() string { return "prices: " + quote(model) + ": " }
			f := r.fields(item, pricePlace, nil)
			if f == nil {
				continue
			}
			r.needs(item, pricePlace, "")
			if _, twice := r.file.Prices[model]; twice {
				r.warnAt(n.src, n.kids.keyAt[i], "keep one of them", "not used: another file has a price for it too")
				continue
			}
			if r.file.Prices == nil {
				r.file.Prices = make(map[string]Price)
			}
			r.file.Prices[model] = Price{Input: priceOf(f.own("input")), Output: priceOf(f.own("output"))}
		}
	}
	r.subject = nil
}

// priceOf returns a number; nil is zero.
func priceOf(n *node) float64 {
	if n == nil {
		return 0
	}
	f, _ := n.float()
	return f
}

// price is the kind of an amount of money for a million tokens.
var price = kind{
	name: "US dollars", want: "a number of US dollars", hint: "write a number such as 0.15, without quotes and currency",
	json: object{{"type", "number"}, {"minimum", 0}, {"maximum", maxPrice}}, fits: func(n *node) bool {
		f, ok := n.float()
		return ok && f >= 0 && f <= maxPrice
	},
}

// maxPrice is far above what any model costs: who writes more has another unit in mind.
const maxPrice = 1_000_000

// checkPrices warns of the prices of models that nobody asks.
func (r *reader) checkPrices() {
	asked := make(map[string]bool)
	r.eachConnection(func(c *Connection) { asked[c.Model] = true })
	r.priceWritten()
	var known []string
	for _, model := range sortedKeys(asked) {
		if model != "" {
			known = append(known, model)
		}
	}
	for _, y := range r.layers {
		n := y.spec.own("prices")
		for i := range n.len() {
			model := n.kids.keys[i]
			if asked[model] && model != "" {
				continue
			}
			hint := "remove it, or write the name of a model that an agent has"
			if best := nearestOf(model, known...); best != "" {
				hint = "did you mean " + best + "?"
			}
			r.warnAt(n.src, n.kids.keyAt[i], hint, "prices: no agent has the model %s", quote(model))
		}
	}
}

// priceWritten gives models that a variable names their prices under the name
// that runs record.
func (r *reader) priceWritten() {
	r.eachConnection(func(c *Connection) {
		if p, ok := r.file.Prices[c.Model]; ok {
			r.file.Prices[c.ModelAsWritten()] = p
		}
	})
}

// eachConnection calls do for the connections of all agents and of the
// coordinator, and for those of their fallback.
func (r *reader) eachConnection(do func(*Connection)) {
	all := func(c *Connection) {
		do(c)
		for i := range c.Fallback {
			do(&c.Fallback[i])
		}
	}
	for i := range r.file.Agents {
		all(&r.file.Agents[i].Connection)
	}
	if c := r.file.Coordinator; c != nil {
		all(&c.Connection)
	}
}
