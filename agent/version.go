package agent

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/runteam/runteam/llm"
)

// Version names what the answers of the agent depend on beside its prompts: the
// models that may answer, where they are, and the parameters of its calls. It is
// empty if a model does not name itself, as those of llm/openai do, with a method
// Name() string: then the version is unknown.
func (a *LLM) Version() string {
	if a.Check() != nil {
		return ""
	}
	var b strings.Builder
	for i, m := range a.models {
		named, ok := m.(interface{ Name() string })
		if !ok {
			return ""
		}
		word := "llm"
		if i > 0 {
			word = ", fallback"
		}
		fmt.Fprintf(&b, "%s %q at %q", word, named.Name(), cmp.Or(llm.Endpoint(m), "an endpoint without a name"))
		if i == 0 {
			o := &a.options
			fmt.Fprintf(&b, ", maxTokens %d, maxTurns %d, temperature %s, topP %s", o.MaxTokens, o.MaxTurns, decimal(o.Temperature), decimal(o.TopP))
		}
	}
	return b.String()
}

// decimal writes a parameter that may be left to the endpoint.
func decimal(v *float64) string {
	if v == nil {
		return "unset"
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}
