package journals

import (
	"encoding/json"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/llm"
)

// Prices are the prices of models in US dollars for a million tokens, by the name of the model.
type Prices map[string]llm.Price

// Prices returns the prices that a run has from its spec.
func (k *StoredRun) Prices() (p Prices) {
	_ = json.Unmarshal(k.Info.Prices, &p) // without prices nothing has a cost
	return p
}

// Cost returns what tokens of a model cost: what its calls were charged with, else by its price. It is
// unknown without a price, unless nothing was used.
func (p Prices) Cost(model string, u llm.Usage, charged llm.Money) (cost llm.Money, known bool) {
	price, priced := p[model]
	if charged == 0 {
		charged = price.Cost(u)
	}
	return charged, priced || charged != 0 || u == (llm.Usage{})
}

// Cost returns what the calls of a task cost by the prices of its models. It is unknown if a model has no price.
func (k *StoredRun) Cost(t *runstate.Task, prices Prices) (sum llm.Money, known bool) {
	known = true
	add := func(model string, u llm.Usage, charged llm.Money) {
		cost, priced := prices.Cost(model, u, charged)
		sum, known = sum.Add(cost), known && priced
	}
	for _, x := range t.Answered() {
		add(x.Model, x.Usage(), charged(x))
	}
	for _, call := range k.State.Interrupted(t) {
		add(call.Model, runstate.Estimate(call), 0)
	}
	return sum, known
}

// charged returns what a call was charged with; a cached answer cost nothing.
func charged(x *record.AgentCall) llm.Money {
	if x.From != "" {
		return 0
	}
	return x.Cost
}
