package journals

import (
	"encoding/json"

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
