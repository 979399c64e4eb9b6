package specfile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// followsFromEntry reports whether a problem that the gate finds in a policy only follows from what is
// wrong with the same entry: it is about a value that is missing or could not be read, about
// the mode, or says that the entry is empty. A rule replaces what is wrong in allow and reveal.
func (r *reader) followsFromEntry(p task.Problem) bool {
	parts := tokens(p.Pointer)
	entry, _, _ := r.places.resolve(parts[:min(3, len(parts))])
	n, _, _ := r.places.resolve(parts)
	switch {
	case !r.isWrong(entry):
		return false
	case strings.HasSuffix(p.Pointer, "/mode"), p.Message == "it says nothing":
		return true
	}
	return n != entry && r.isWrong(n) && !strings.HasSuffix(p.Pointer, "/allow") && !strings.HasSuffix(p.Pointer, "/reveal")
}

// isWrong reports whether a value is missing, or has a problem at it or in it.
func (r *reader) isWrong(n *node) bool {
	return n == nil || slices.ContainsFunc(r.found, func(f finding) bool { return f.src == n.src && n.at <= f.at && f.at < n.end })
}

// checkPolicy reports the problems that the gate finds in a policy, with their places. When
// the team is made, only problems with schemas of results can be added.
func (r *reader) checkPolicy(p *handoff.Policy, f *fields) {
	r.uniqueRules(p)
	clash := r.uniquePatterns(p, f)
	if len(r.found) >= tooMany {
		return
	}
	parties, ofRun := r.policyParties()
	_, err := gate.Compile(p, parties)
	problems, _ := errors.AsType[task.Problems](err)
	if !ofRun {
		problems = r.file.known(problems)
	}
	for _, problem := range slices.DeleteFunc(problems, r.followsFromEntry) {
		if len(r.found) < tooMany && !(clash && problem.Pointer == "/policy/redact") {
			problem.Subject = r.policySubject(tokens(problem.Pointer))
			r.found = append(r.found, r.places.find(problem))
		}
	}
}

// policyParties returns the readers that a policy may name: those of the file, or of the run that a file without agents
// is for. A run checks the names itself, unless the file has other problems and never gets there.
func (r *reader) policyParties() (all []gate.Party, ofRun bool) {
	var names []string
	if len(r.file.Agents) == 0 && len(r.found) > 0 && r.o.members != nil {
		names = r.o.members()
	}
	ofRun = len(names) > 0
	for i := range r.file.Agents {
		names = append(names, r.file.Agents[i].Member.Name)
	}
	if !ofRun {
		names = append(names, r.file.Tools.readers()...)
	}
	for _, name := range names {
		all = append(all, gate.Party{Name: name})
	}
	return all, ofRun
}

// known removes problems of unknown names in a policy if an agent has no name, since the
// policy may mean that agent, and of tools that could not be read.
func (f *File) known(problems task.Problems) task.Problems {
	unnamed := nameless(f)
	return slices.DeleteFunc(problems, func(p task.Problem) bool {
		side := strings.HasSuffix(p.Pointer, "/from") || strings.HasSuffix(p.Pointer, "/to")
		if !side || !errors.Is(p, handoff.ErrPolicy) {
			return false
		}
		n, _, _ := f.places.resolve(tokens(p.Pointer))
		return unnamed || f.Tools.follows(text(n))
	})
}

// nameless reports whether an agent has no name, or there are no agents.
func nameless(f *File) bool {
	return len(f.Agents) == 0 || slices.ContainsFunc(f.Agents, func(a Agent) bool { return a.Member.Name == "" })
}

// policySubject names the part of the policy that a pointer is about.
func (r *reader) policySubject(parts []string) string {
	if len(parts) > 2 {
		if n, _, _ := r.places.resolve(parts[:3]); n != nil {
			if i, err := strconv.Atoi(parts[2]); err == nil {
				return "policy: " + entryName(parts[1], i, n)
			}
		}
	}
	return "policy"
}

// uniqueRules reports rules with the same name.
func (r *reader) uniqueRules(p *handoff.Policy) {
	first := make(map[handoff.Rule]int)
	for i := range p.Rules {
		name := p.Rules[i].ID
		if name == "" {
			continue
		}
		if k, twice := first[name]; twice {
			n, _, _ := r.places.resolve([]string{"policy", "rules", fmt.Sprint(i), "name"})
			r.subject = nil
			r.bad(n, "give each rule a name of its own, or none", "policy: rule %s: the rule in line %d has this name too", quote(string(name)), p.Rules[k].Origin.Line)
			continue
		}
		first[name] = i
	}
}

// uniquePatterns reports patterns with the same name and different meanings, and returns
// whether there are any.
func (r *reader) uniquePatterns(p *handoff.Policy, f *fields) (clash bool) {
	known := make(map[string]string)
	look := func(of handoff.Redaction, where ...string) {
		r.subject = nil
		own := make(map[string]bool)
		for i, pattern := range of.Patterns {
			regexp, twice := known[pattern.Name]
			n, _, _ := walk(f.node, append(where, "redact", "patterns", fmt.Sprint(i), "name"))
			switch {
			case pattern.Name == "" || n == nil:
			case own[pattern.Name]:
				r.bad(n, "join the two by |", "policy: pattern %s: duplicate name", quote(pattern.Name))
				clash = true
			case twice && regexp != pattern.Regexp:
				r.bad(n, "give each pattern a name of its own", "policy: pattern %s: another one has this name and another regexp", quote(pattern.Name))
				clash = true
			}
			known[pattern.Name], own[pattern.Name] = pattern.Regexp, true
		}
	}
	look(p.Redact)
	for i := range p.Rules {
		look(p.Rules[i].Redact, "rules", fmt.Sprint(i))
	}
	return clash
}

// inPolicy finds a value of a policy. For a mode without a key, it finds the key that
// implies the mode; for a pattern, the part that is wrong.
func inPolicy(policy *node, parts []string) (*node, *source, int) {
	n, src, at := walk(policy, parts)
	last := len(parts) - 1
	switch {
	case n == nil && last > 1 && parts[last] == "mode":
		rule, _, _ := walk(policy, parts[:last])
		for _, key := range [...]string{"allow", "block"} {
			if other := rule.get(key); other != nil {
				return other, other.src, other.at
			}
		}
	case n != nil && last > 0 && parts[last-1] == "patterns":
		if bad := badPart(n); bad != nil {
			return bad, bad.src, bad.at
		}
	}
	return n, src, at
}

// badPart returns the part of a pattern that is wrong: its name, else its regexp.
func badPart(n *node) *node {
	const never = `\x{10FFFF}`
	if _, err := redact.New(nil, []redact.Pattern{{Name: text(n.get("name")), Regexp: never}}); err != nil {
		return n.get("name")
	}
	return n.get("regexp")
}

// needed returns the need of a dependency or an input: its own, or for a dependency that of
// the task; nil if there is none.
func needed(f *fields, parts []string) *node {
	isUse := parts[0] == "uses"
	if parts = inWorkspace(f, parts); parts[0] == "workspace" && isUse {
		return f.get("workspace").get("need")
	} else if parts[0] == "workspace" {
		return f.get("needToKnow")
	}
	item, _, _ := walk(f.get(parts[0]), parts[1:])
	if own := item.get("need"); own != nil || parts[0] != "dependsOn" {
		return own
	}
	return f.get("needToKnow")
}
