package agent

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/endpoint"
)

// Version names what the answers of the agent depend on in addition to its prompts: the
// models that may answer, their endpoints and the settings of its calls. It includes the
// result of a model's method Version() string. It is empty, which means unknown, if a
// model has no method Name() string, which those of llm/openai have.
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
		fmt.Fprintf(&b, "%s %q at %q", word, named.Name(), cmp.Or(endpoint.Of(m), "an endpoint without a name"))
		if i == 0 {
			a.options.describe(&b)
		}
		if v, ok := m.(interface{ Version() string }); ok && v.Version() != "" {
			b.WriteString(", " + v.Version())
		}
	}
	return b.String()
}

// IsDeterministic reports whether equal prompts have equal answers, as far as settings can say that:
// it has one model, whose settings do. A loop of such agents ends with LOOP_STUCK if it repeats
// itself. Other agents may have this method too.
func (a *LLM) IsDeterministic() bool {
	return a.Check() == nil && len(a.models) == 1 && a.options.IsDeterministic()
}

// describe writes the settings that change a request. Settings that earlier releases did
// not have are left out if they are not set, so that answers of those releases stay
// usable.
func (o *Options) describe(b *strings.Builder) {
	fmt.Fprintf(b, ", maxTokens %d, maxTurns %d, temperature %s, topP %s", o.MaxTokens, o.MaxTurns, decimal(o.Temperature), decimal(o.TopP))
	if o.FrequencyPenalty != nil {
		fmt.Fprintf(b, ", frequencyPenalty %s", decimal(o.FrequencyPenalty))
	}
	if o.PresencePenalty != nil {
		fmt.Fprintf(b, ", presencePenalty %s", decimal(o.PresencePenalty))
	}
	if o.Seed != nil {
		fmt.Fprintf(b, ", seed %d", *o.Seed)
	}
	if len(o.Stop) > 0 {
		fmt.Fprintf(b, ", stop %q", o.Stop)
	}
	if o.TextToolCalls {
		b.WriteString(", textToolCalls")
	}
	if o.ReasoningEffort != "" {
		fmt.Fprintf(b, ", reasoningEffort %q", o.ReasoningEffort)
	}
}

// decimal writes a parameter that may be left to the endpoint.
func decimal(v *float64) string {
	if v == nil {
		return "unset"
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}
