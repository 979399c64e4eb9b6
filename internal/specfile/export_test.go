package specfile

import (
	"fmt"

	"github.com/runteam/runteam/tool"
)

// A Word describes a key that a file may have; see [Vocabulary].
type Word struct {
	Place  string // the object that it belongs to: spec, goal, coordinator, team, orchestrator, agent, agentDefaults, task, taskDefaults, provenance, requires, input, message, dependency, condition, repeat, forEach, verify, judge, use, endpoint, fallback, price, policy, rule, translate, summarize, redact, pattern, declassify, endorse, renew
	Key    string
	Kind   string // what may be written
	Status Status
	Says   string // what it does, or why it is not supported and what to write instead
}

// Vocabulary returns every key that files may have, by place. Every other key is an error.
func Vocabulary() []Word {
	var words []Word
	for _, p := range allPlaces {
		for i := range p.keys {
			k := &p.keys[i]
			words = append(words, Word{p.name, k.name, k.kind.name, k.status, k.says})
		}
	}
	return words
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
