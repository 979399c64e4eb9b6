package specfile

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/tool"
)

// A Word describes a key that a file may have; see [Vocabulary].
type Word struct {
	Place  string // the object that it belongs to: spec, goal, coordinator, team, orchestrator, agent, agentDefaults, task, taskDefaults, provenance, requires, input, message, dependency, condition, repeat, forEach, verify, judge, use, endpoint, fallback, price, policy, rule, translate, summarize, redact, pattern, declassify, endorse, renew
	Key    string
	Kind   string // what may be written
	Status Status
	Says   string // what it does, or why it is not supported and what to write instead
	Class  string // the same for keys that accept the same values
}

// Vocabulary returns every key that files may have, by place. Every other key is an error.
func Vocabulary() []Word {
	var words []Word
	for _, p := range allPlaces {
		for i := range p.keys {
			k := &p.keys[i]
			class := fmt.Sprintf("%s %s %s %v %p %p", k.status, k.kind.want, k.kind.hint, k.kind.json, k.kind.fits, k.kind.check)
			words = append(words, Word{p.name, k.name, k.kind.name, k.status, k.says, class})
		}
	}
	return words
}

// Required returns what to write where a required key is missing, by place and key.
func Required() map[string]string {
	all := make(map[string]string)
	for _, p := range allPlaces {
		for _, key := range p.needs {
			all[p.name+"."+key] = exampleOf(p, key)
		}
	}
	return all
}

// Unneeded returns the examples that no key has.
func Unneeded() (all []string) {
	for name := range examples {
		used := slices.ContainsFunc(allPlaces, func(p *place) bool {
			return slices.ContainsFunc(p.keys, func(k key) bool { return name == k.name || name == p.name+"."+k.name })
		})
		if !used {
			all = append(all, name)
		}
	}
	return all
}

// Servers returns the settings of the MCP servers of a file.
func Servers(f *File) (all []string) {
	for _, e := range f.Tools.list {
		if s := e.server; s != nil {
			all = append(all, fmt.Sprint(s.Name, s.Command, s.Args, s.Env, s.Dir, s.URL, s.Headers, s.Allow, s.SharedSession, s.Stateless))
		}
	}
	return all
}

// Concealed returns a tool whose results have ${NAME} in place of values of variables.
func Concealed(t *tool.Tool, values map[string]string) *tool.Tool {
	return (&toolEntry{values: values}).concealed(t)
}

// ParseJSON reads a text that may have fewer values than a file.
func ParseJSON(text string, maxValues int) error {
	p := newJSONParser(newSource("", "", text))
	p.maxValues = maxValues
	_, _, err := p.document()
	return err
}
