package spec

import (
	"regexp"
	"strings"
)

// Two things look like ${…}: variables of the environment, where endpoints and
// files are named, and parameters, in prompts. Neither is looked for in the
// other's place, so no environment enters a prompt.

// envName is the name of a variable of the environment.
var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// wholeVariable is a text that is nothing but one variable without a default.
var wholeVariable = regexp.MustCompile(`^\$\{[A-Za-z_][A-Za-z0-9_]*\}$`)

// expand replaces ${NAME} and ${NAME:-else} in the text of a node by the
// environment. What is wrong is reported at the text; ok is false then.
func (l *loader) expand(key string, n *node) (text string, ok bool) {
	if n == nil {
		return "", true
	}
	rest := n.text
	var b strings.Builder
	for ok = true; ; {
		before, after, found := strings.Cut(rest, "${")
		b.WriteString(before)
		if !found {
			return b.String(), ok
		}
		body, after, closed := strings.Cut(after, "}")
		if !closed {
			l.bad(n, ErrInvalid, "write ${NAME} or ${NAME:-else}", "%s: ${ without its }", key)
			return "", false
		}
		name, instead, has := strings.Cut(body, ":-")
		value, set := l.lookup(name)
		switch {
		case strings.HasPrefix(name, "params."):
			l.bad(n, ErrInvalid, "write the value itself, or a variable of the environment", "%s: parameters stand in the goal, descriptions and prompts only", key)
			ok = false
		case !envName.MatchString(name):
			l.bad(n, ErrInvalid, "write ${NAME} or ${NAME:-else}", "%s: what stands in ${…} is no name of a variable", key)
			ok = false
		case has && value == "":
			b.WriteString(instead)
		case set:
			b.WriteString(value)
		default:
			l.bad(n, ErrInvalid, "set it, or write ${"+name+":-else}", "%s: the environment has no %s", key, name)
			ok = false
		}
		rest = after
	}
}

func (l *loader) lookup(name string) (string, bool) {
	if l.o.Lookup == nil {
		return "", false
	}
	return l.o.Lookup(name)
}
