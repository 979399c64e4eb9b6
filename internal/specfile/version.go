package specfile

import (
	"cmp"
	"crypto/sha256"
	"fmt"
)

// version names everything beside the prompt that the answers at a connection
// depend on, as far as a file says it: a digest, so that it tells nothing of a
// base URL. That counts as it is written: a variable in it, such as a port, is
// where the endpoint happens to be. Keys and headers say who asks, and bounds on time how long; they do
// not count.
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
	add(len(c.ExtraBody) > 0, "extraBody", c.ExtraBody)
	for i := range c.Fallback {
		word := c.Fallback[i].version()
		fmt.Fprintf(h, "fallback %d:%s", len(word), word)
	}
	return fmt.Sprintf("spec1-%x", h.Sum(nil)[:16])
}

// readVersions gives the agents and the coordinator their versions, when flags have been applied.
func (r runReader) readVersions() {
	for i := range r.file.Agents {
		a := &r.file.Agents[i]
		a.Member.Version = a.version()
	}
	if c := r.file.Coordinator; c != nil {
		c.Version = c.Connection.version()
	}
}
