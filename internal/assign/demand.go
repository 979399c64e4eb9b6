package assign

import (
	"fmt"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
)

// A demand is one thing that a task requires of its agent.
type demand struct {
	degree
	word string // of the kinds up to tag
	who  set    // the agents that meet it; nil means none
}

// A degree is the kind of a demand and, for a demand that is no word, its amount.
type degree struct {
	kind   kind
	level  label.Classification // of clearance and production
	length time.Duration        // of session
}

// reachedBy reports whether an agent reaches the degree. No agent reaches a level beyond
// those that exist, and below them, the lowest counts.
func (d degree) reachedBy(a *Agent) bool {
	if d.kind == session {
		return a.MaxSession <= 0 || a.MaxSession >= d.length
	}
	most := a.Clearance
	if d.kind == production {
		most = a.Produces
	}
	return d.level <= label.Secret && most >= max(d.level, label.Public)
}

func (d *demand) metBy(i int32) bool { return d.who != nil && d.who.has(i) }

// kind is the kind of a demand. Those up to provider are keys of requires, and those up to
// tag are words.
type kind int

const (
	capability kind = iota
	tool
	backend
	provider
	tag
	clearance  // to read the context
	production // of results as sensitive as the context
	session
)

// normal returns the form in which words of this kind are compared.
func (k kind) normal(word string) string {
	switch k {
	case tool:
		return strings.TrimSpace(word)
	case tag:
		return word // as the handshake compares it
	}
	return naming.Normalize(word)
}

// lack says what an agent lacks to meet the demand.
func (d *demand) lack(a *Agent) string {
	switch d.kind {
	case tag:
		return fmt.Sprintf("does not declare the tag %q", d.word)
	case clearance:
		return fmt.Sprintf("is cleared for %v, not for %v", a.Clearance, d.level)
	case production:
		return fmt.Sprintf("produces at most %v, not %v", a.Produces, d.level)
	case session:
		return fmt.Sprintf("keeps a session for %v, not for %v", a.MaxSession, d.length)
	}
	return fmt.Sprintf("lacks the %s %q", d.kind, d.word)
}

// String returns the name of a kind of requires for messages.
func (k kind) String() string {
	return [...]string{capability: "capability", tool: "tool", backend: "backend", provider: "provider"}[k]
}

// key returns the key of requires of a kind, and the key of an agent that meets it.
func (k kind) key() (ofTask, ofAgent string) {
	keys := [...][2]string{
		capability: {"requiredCapabilities", "capabilities"}, tool: {"requiredTools", "tools"},
		backend: {"requiredBackend", "backend"}, provider: {"requiredProvider", "provider"},
	}[k]
	return keys[0], keys[1]
}

// unmet says that no agent meets the demand, which one comes nearest, and what to write
// instead.
func (r *roster) unmet(d *demand) (message, hint string) {
	switch d.kind {
	case tag:
		return fmt.Sprintf("no agent declares the tag %q", d.word), r.near(d, "add it to an agent's outputTags, or drop it from requiredTags")
	case clearance:
		most := r.most(func(a, b *Agent) bool { return a.Clearance > b.Clearance })
		return fmt.Sprintf("no agent is cleared for %v: the highest is %v, %q", d.level, most.Clearance, most.Name),
			fmt.Sprintf("set accepts: %v on an agent, or remove the %v context", d.level, d.level)
	case production:
		most := r.most(func(a, b *Agent) bool { return a.Produces > b.Produces })
		return fmt.Sprintf("no agent produces %v: the highest is %v, %q", d.level, most.Produces, most.Name),
			fmt.Sprintf("set produces: %v on an agent, or remove the %v context", d.level, d.level)
	case session:
		most := r.most(func(a, b *Agent) bool { return a.MaxSession > b.MaxSession })
		return fmt.Sprintf("no agent keeps a session for %v: the longest is %v, %q", d.length, most.MaxSession, most.Name),
			"lower timeoutMs, or raise an agent's maxSessionMs"
	}
	ofTask, ofAgent := d.kind.key()
	message = fmt.Sprintf("no agent has the %s %q", d.kind, d.word)
	switch known := r.spelled[d.kind]; {
	case d.kind == capability:
		return message, r.near(d, fmt.Sprintf("add it to an agent's %s, or drop it from %s", ofAgent, ofTask))
	case len(known) == 0: // agents cannot have any yet, so there is nothing to add
		return message, fmt.Sprintf("leave %s out: no agent has any", ofTask)
	default:
		return message, r.near(d, fmt.Sprintf("leave %s out, or write one of %s", ofTask, strings.Join(known[:min(len(known), 12)], ", ")))
	}
}

// most returns the highest agent, the first of several.
func (r *roster) most(above func(a, b *Agent) bool) *Agent {
	best := &r.agents[0]
	for i := range r.agents {
		if above(&r.agents[i], best) {
			best = &r.agents[i]
		}
	}
	return best
}

// near returns a hint with the nearest word that some agent has, or the other hint if there
// is none or the budget of comparisons is spent.
func (r *roster) near(d *demand, otherwise string) string {
	known := r.spelled[d.kind]
	if r.nearest -= len(known); r.nearest < 0 {
		return otherwise
	}
	if near, ok := naming.Nearest(d.word, known); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return otherwise
}
