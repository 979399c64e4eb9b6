package specfile

import (
	"cmp"
	"crypto/sha256"
	"fmt"
)

// version returns a digest of all settings of a connection on which answers depend besides
// the prompt. The base URL counts as written: a variable in it, such as a port, only says
// where the endpoint is at the moment. Keys, headers and timeouts do not count.
func (c *Connection) version() string {
	number := func(f *float64) string {
		if f == nil {
			return "default"
		}
		return fmt.Sprint(*f)
	}
	h := sha256.New()
	for _, word := range []string{
		openAI, c.Model, cmp.Or(c.written, "default"), number(c.Temperature), number(c.TopP), fmt.Sprint(c.MaxTokens), fmt.Sprint(c.MaxTurns),
	} {
		fmt.Fprintf(h, "%d:%s", len(word), word)
	}
	// What is not set is left out, so that answers of earlier versions stay usable.
	add := func(set bool, name string, value any) {
		if text := fmt.Sprintf("%q", value); set {
			fmt.Fprintf(h, "%s %d:%s", name, len(text), text)
		}
	}
	add(c.FrequencyPenalty != nil, "frequencyPenalty", number(c.FrequencyPenalty))
	add(c.PresencePenalty != nil, "presencePenalty", number(c.PresencePenalty))
	if c.Seed != nil {
		add(true, "seed", fmt.Sprint(*c.Seed))
	}
	add(len(c.Stop) > 0, "stop", c.Stop)
	add(c.ReasoningEffort != "", "reasoningEffort", c.ReasoningEffort)
	add(c.SystemRole != "" && c.SystemRole != "system", "systemRole", c.SystemRole)
	add(c.StructuredOutput != "" && c.StructuredOutput != "auto", "structuredOutput", c.StructuredOutput)
	add(c.TextToolCalls, "textToolCalls", true)
	add(len(c.ExtraBody) > 0, "extraBody", c.ExtraBody)
	for i := range c.Fallback {
		word := c.Fallback[i].version()
		fmt.Fprintf(h, "fallback %d:%s", len(word), word)
	}
	return fmt.Sprintf("spec1-%x", h.Sum(nil)[:16])
}

// readVersions sets the versions of the agents and the coordinator, after the options were applied.
func (r *reader) readVersions() {
	for i := range r.file.Agents {
		a := &r.file.Agents[i]
		if a.HasModel() {
			r.applyTextCalls(&a.Connection)
		}
		a.Member.Version = a.version()
	}
	if c := r.file.Coordinator; c != nil {
		c.Version = c.Connection.version()
	}
}
