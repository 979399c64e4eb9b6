package agent

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/runteam/runteam/llm"
)

// Version names what the answers of the agent depend on beside its prompts:
// the model, where it is, and the parameters of its calls. It is empty if the
// model does not name itself, as those of llm/openai do, with a method Name()
// string: then nobody knows.
func (a *LLM) Version() string {
	if a.Check() != nil {
		return ""
	}
	named, ok := a.model.(interface{ Name() string })
	if !ok {
		return ""
	}
	o := &a.options
	return fmt.Sprintf("llm %q at %q, maxTokens %d, maxTurns %d, temperature %s, topP %s",
		named.Name(), cmp.Or(llm.Endpoint(a.model), "an endpoint without a name"), o.MaxTokens, o.MaxTurns, decimal(o.Temperature), decimal(o.TopP))
}

// decimal writes a parameter that may be left to the endpoint.
func decimal(v *float64) string {
	if v == nil {
		return "unset"
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}
