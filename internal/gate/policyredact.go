package gate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

func (r redaction) empty() bool { return len(r.Kinds) == 0 && len(r.Patterns) == 0 }

// checkRedaction checks kinds and patterns, and remembers them.
func (p place) checkRedaction(r redaction) {
	c := p.checker
	known := len(c.found)
	for k, kind := range r.Kinds {
		switch {
		case kind.Secret():
			p.add(fmt.Sprintf("%s is always redacted", kind), "leave it out", "kinds", k)
		case !slices.Contains(redact.PersonalKinds(), kind):
			p.add(fmt.Sprintf("unknown kind %q", kind), naming.Suggest(string(kind), kindNamesOf(redact.PersonalKinds())), "kinds", k)
		}
	}
	for k, pattern := range r.Patterns {
		if _, err := redact.New(nil, []redact.Pattern{pattern}); err != nil {
			says, hint := patternAdvice(err)
			p.add(says, hint, "patterns", k)
		}
	}
	c.all, c.unclear = c.all.and(r), c.unclear || len(c.found) > known
}

// patternAdvice splits what package redact says of a pattern into what is
// wrong and what to write instead.
func patternAdvice(err error) (says, hint string) {
	says = err.Error()
	for _, verb := range [...]string{"ask", "choose", "write", "join", "shorten"} {
		if i := strings.LastIndex(says, ": "+verb+" "); i >= 0 {
			says, hint = says[:i], says[i+2:]
			break
		}
	}
	switch {
	case strings.HasPrefix(hint, "write a name"):
		says += ": not a name of a pattern"
	case strings.Contains(says, "error parsing regexp"):
		hint = "write it in RE2 syntax, and in quotes"
	}
	return says, hint
}

func kindNamesOf(kinds []redact.Kind) []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return names
}

// checkReveal checks which kinds a rule delivers in clear.
func (p place) checkReveal(r *handoff.PairRule, exact bool) {
	if len(r.Reveal) == 0 {
		return
	}
	if !exact || r.To == handoff.User {
		p.add("reveal is for one pair of agents", "write it in a rule with a name on both sides; to the user nothing personal is redacted")
	}
	for _, problem := range CheckReveal(r.Reveal) {
		p.add(problem.Message, problem.Hint, problem.tokens...)
	}
}

// A RevealProblem is something wrong with a reveal, and where below it.
type RevealProblem struct {
	Message, Hint string
	tokens        []any
}

// Pointer returns where the problem is, below the reveal.
func (p RevealProblem) Pointer() string { return naming.Pointer(p.tokens...) }

// CheckReveal finds what is wrong with what is to be delivered in clear: kinds that
// are no personal ones, secrets, and what is no path.
func CheckReveal(reveal map[redact.Kind][]task.Path) (found []RevealProblem) {
	for _, kind := range slices.Sorted(maps.Keys(reveal)) {
		paths := reveal[kind]
		switch {
		case kind.Secret():
			found = append(found, RevealProblem{fmt.Sprintf("%s is a secret: no edge reveals it", kind), "leave it out", []any{string(kind)}})
		case !slices.Contains(redact.PersonalKinds(), kind):
			found = append(found, RevealProblem{fmt.Sprintf("unknown personal kind %q", kind), naming.Suggest(string(kind), kindNamesOf(redact.PersonalKinds())), []any{string(kind)}})
		case len(paths) == 0:
			found = append(found, RevealProblem{"it names no path", `write where it may stand: [/path], or [""] for the whole value`, []any{string(kind)}})
		}
		for k, p := range paths {
			if err := pick.CheckAllow(p); err != nil {
				says, hint := revealAdvice(p, err)
				found = append(found, RevealProblem{says, hint, []any{string(kind), k}})
			}
		}
	}
	return found
}

// revealAdvice splits what package pick says of a path in a reveal into what is
// wrong and what to write instead, which never reveals more than one member.
func revealAdvice(p task.Path, err error) (says, hint string) {
	says = strings.TrimPrefix(err.Error(), pick.ErrPath.Error()+": ")
	if i := strings.LastIndex(says, ": write "); i >= 0 {
		says, hint = says[:i], says[i+2:]
	}
	if strings.HasPrefix(string(p), "*") {
		hint = `name the member: [/iban]; [""] is the whole value`
	}
	return says, hint
}
