package task

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/naming"
)

// Requires lists what the agent of a task must have. All are required. Names are compared
// without regard to case and surrounding spaces, except those of Tools, which must match
// exactly. The zero value and nil require nothing.
type Requires struct {
	Tools        []string `json:"requiredTools,omitempty"` // tools that it may call
	Capabilities []string `json:"requiredCapabilities,omitempty"`
	Backend      string   `json:"requiredBackend,omitempty"`  // what runs it
	Provider     string   `json:"requiredProvider,omitempty"` // whose models it calls, such as "openai"
}

// isEmpty reports whether r requires nothing. r may be nil.
func (r *Requires) isEmpty() bool {
	return r == nil || len(r.Tools)+len(r.Capabilities)+len(r.Backend)+len(r.Provider) == 0
}

// trimmed returns a copy without surrounding spaces, or nil if r requires nothing.
func (r *Requires) trimmed() *Requires {
	if r.isEmpty() {
		return nil
	}
	return &Requires{
		Tools: trimAll(r.Tools), Capabilities: trimAll(r.Capabilities),
		Backend: trimWord(r.Backend), Provider: trimWord(r.Provider),
	}
}

func trimAll(list []string) []string {
	list = slices.Clone(list)
	for k := range list {
		list[k] = strings.TrimSpace(list[k])
	}
	return list
}

// trimWord keeps a word of spaces unchanged, so that it is refused instead of being
// read as no requirement.
func trimWord(word string) string {
	if trimmed := strings.TrimSpace(word); trimmed != "" {
		return trimmed
	}
	return word
}

// requires finds what is wrong with what a task asks of its agent.
func (c *checker) requires() {
	r := c.t.Requires
	c.names(r.Tools, exactly, "requires", "requiredTools")
	c.names(r.Capabilities, naming.Normalize, "requires", "requiredCapabilities")
	for k, name := range r.Tools {
		if c.t.Tools != nil && !slices.Contains(c.t.Tools, name) {
			c.bad(nil, fmt.Sprintf("requiredTools[%d]: %s is not in tools, so the task may not call it", k, naming.Quote(name)), "add it to tools, or remove it here", "requires", "requiredTools", k)
		}
	}
	for _, one := range [...]struct{ key, word string }{{"requiredBackend", r.Backend}, {"requiredProvider", r.Provider}} {
		if one.word == "" {
			continue
		}
		if err := naming.CheckTitle(one.word); err != nil {
			c.bad(err, fmt.Sprintf("%s: %v", one.key, err), "write one word, or leave it out", "requires", one.key)
		}
	}
}

// tools finds what is wrong with the names of the tools of a task.
func (c *checker) tools() { c.names(c.t.Tools, exactly, "tools") }

// exactly returns a name as it is.
func exactly(name string) string { return name }

// names checks the list at a path, whose entries are the same if their normal forms are.
func (c *checker) names(list []string, normal func(string) string, path ...any) {
	seen, key := make(map[string]bool, len(list)), path[len(path)-1]
	for k, one := range list {
		at := append(slices.Clip(path), k)
		if err := naming.CheckTitle(one); err != nil {
			c.bad(err, fmt.Sprintf("%s[%d]: %v", key, k, err), "write one clean line, or remove it", at...)
			continue
		}
		if name := normal(one); seen[name] {
			c.bad(ErrDuplicate, fmt.Sprintf("%s[%d]: %s is named before", key, k, naming.Quote(one)), "remove it", at...)
		} else {
			seen[name] = true
		}
	}
}
