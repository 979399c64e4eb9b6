package gate

import (
	"context"
	"maps"
	"regexp"
	"strings"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// redactPayload takes secrets and personal data out of both parts, but for what the
// grant reveals.
func (c *Compartment) redactPayload(ctx context.Context, g *Grant, d *Ruling, p envelope.Payload) (envelope.Payload, error) {
	r := standardRedactor(c.Contract.Callee)
	if g.Terms != nil {
		r = g.Terms.redactor
	}
	reveal := g.reveals(c.Contract.toAgent())
	text, out, shown, err := redactText(ctx, r, p.Text(), reveal)
	if err != nil {
		return envelope.Payload{}, err
	}
	d.Redacted, d.Revealed = out, shown
	canonical, ok := p.JSON()
	if !ok {
		if out == nil {
			return p, nil
		}
		return envelope.Text(text), nil
	}
	clean, out, shown, err := r.JSON(ctx, canonical, reveal)
	if err != nil {
		return envelope.Payload{}, err
	}
	d.Redacted, d.Revealed = sum(d.Redacted, out), sum(d.Revealed, shown)
	p = p.WithText(text)
	if clean == canonical {
		return p, nil
	}
	value, err := jsonvalue.Decode(clean)
	if err != nil {
		return envelope.Payload{}, err
	}
	v, err := jsonvalue.Encode(value) // keys that were redacted may be out of order
	if err != nil {
		return envelope.Payload{}, err
	}
	return p.WithStructured(v), nil
}

// fence is all that may surround a value whose structure is redacted: whitespace,
// and the line of a code fence with the short name of a language.
var fence = regexp.MustCompile("^\\s*(?:```[A-Za-z0-9_+-]{0,10})?\\s*$")

// redactText redacts a text. One that is a strict JSON value, in a code fence or
// not, is redacted by its structure: names say what their values are, and paths
// reveal. What is not redacted keeps its bytes.
func redactText(ctx context.Context, r *redact.Redactor, text string, reveal func(kind redact.Kind, path []string) bool) (string, redact.Counts, redact.Counts, error) {
	if strings.IndexByte(text, '{') < 0 && strings.IndexByte(text, '[') < 0 {
		return r.TextRevealing(ctx, text, reveal)
	}
	before, body, after := jsonvalue.Unfence(text)
	if !strings.HasPrefix(body, "{") && !strings.HasPrefix(body, "[") || !fence.MatchString(before) || !fence.MatchString(after) {
		return r.TextRevealing(ctx, text, reveal)
	}
	if _, err := jsonvalue.Decode(body); err != nil {
		return r.TextRevealing(ctx, text, reveal)
	}
	clean, out, shown, err := r.JSON(ctx, body, reveal)
	if err != nil {
		return "", nil, nil, err
	}
	return before + clean + after, out, shown, nil
}

// reveals returns what the redactor asks about personal data, or nil if all of
// it is redacted.
func (g *Grant) reveals(toAgent bool) func(kind redact.Kind, path []string) bool {
	var rule map[redact.Kind][]task.Path
	if g.Terms != nil {
		rule = g.Terms.reveal
	}
	if len(rule) == 0 && len(g.Reveal) == 0 || !toAgent {
		return nil
	}
	return func(kind redact.Kind, path []string) bool {
		return !kind.Secret() && (covered(rule[kind], path) || covered(g.Reveal[kind], path))
	}
}

func covered(paths []task.Path, path []string) bool {
	for _, p := range paths {
		if pick.Covers(p, path) {
			return true
		}
	}
	return false
}

func sum(a, b redact.Counts) redact.Counts {
	if len(b) == 0 {
		return a
	}
	if len(a) == 0 {
		return b
	}
	a = maps.Clone(a)
	for kind, n := range b {
		a[kind] += n
	}
	return a
}
