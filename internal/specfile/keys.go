package specfile

import (
	"cmp"
	"slices"
	"strings"
)

// Status says what a key does.
type Status string

// The statuses.
const (
	Works    Status = "works"    // it does what it says
	NotBuilt Status = "notBuilt" // planned: an error, unless the value requests nothing
	Refused  Status = "refused"  // a key of the original that runteam does not support: an error, unless the value requests nothing
	Idle     Status = "idle"     // a key of the original that has no effect here: a warning
)

// A Word describes a key that a file may have; see [Vocabulary].
type Word struct {
	Place  string // the object that it belongs to: spec, goal, coordinator, team, orchestrator, agent, agentDefaults, task, taskDefaults, provenance, requires, input, message, dependency, use, endpoint, fallback, price, policy, rule, translate, summarize, redact, pattern, declassify, endorse, renew
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

// A row describes a key that works. Files are read and checked by these rows, and the JSON
// Schema and the reference are made from them.
type row struct {
	name string
	kind kind
	says string
}

// An other is the row of a key that does not work.
type other struct {
	name string
	asks *asking // which values request something; nil means all but null
	says string
}

// A key is a row of the table of a place and the status of the key.
type key struct {
	row
	status Status
	asks   *asking
}

// reason is the part of a description that says why a key is not supported.
func (k *key) reason() string {
	why, _, _ := strings.Cut(strings.ReplaceAll(k.says, "`", ""), "; ")
	return why
}

// instead says what to write instead of a key that is not built or not supported: the text
// after the semicolon of its description.
func (k *key) instead() string {
	_, rest, _ := strings.Cut(strings.ReplaceAll(k.says, "`", ""), "; ")
	switch {
	case rest == "":
		return "remove it"
	case strings.HasPrefix(rest, "or "):
		return "remove it, " + rest
	}
	return "remove it; " + rest
}

// A place is an object of a file and the keys that it may have.
type place struct {
	name  string
	a     string // in messages: "an agent"
	keys  []key
	index map[string]int
	needs []string // required keys
	shows []string // typical keys, for hints
}

func newPlace(name, a string, rows []row) *place {
	p := &place{name: name, a: a}
	for _, r := range rows {
		p.keys = append(p.keys, key{row: r, status: Works})
	}
	return p.indexed()
}

// indexed sets the index of the keys.
func (p *place) indexed() *place {
	p.index = make(map[string]int, len(p.keys))
	for i, k := range p.keys {
		p.index[k.name] = i
	}
	return p
}

func (p *place) notBuilt(rows []other) *place { return p.others(NotBuilt, rows) }
func (p *place) refused(rows []other) *place  { return p.others(Refused, rows) }
func (p *place) idle(rows []other) *place     { return p.others(Idle, rows) }

// others adds keys that do not work.
func (p *place) others(status Status, rows []other) *place {
	for _, o := range rows {
		p.keys = append(p.keys, key{row{o.name, anything, o.says}, status, cmp.Or(o.asks, asksUnlessNull)})
	}
	return p.indexed()
}

// likewise adds the keys of another place that do not work.
func (p *place) likewise(q *place) *place {
	for _, k := range q.keys {
		if k.status != Works {
			p.keys = append(p.keys, k)
		}
	}
	return p.indexed()
}

// without returns a place of another name that lacks some keys.
func (p *place) without(name, a string, keys ...string) *place {
	q := &place{name: name, a: a, keys: slices.Clone(p.keys)}
	q.keys = slices.DeleteFunc(q.keys, func(k key) bool { return slices.Contains(keys, k.name) })
	return q.indexed()
}

// with inserts rows before a key.
func (p *place) with(rows []row, before string) *place {
	p.keys = slices.Insert(p.keys, p.index[before], newPlace("", "", rows).keys...)
	return p.indexed()
}

// needing sets the required keys.
func (p *place) needing(keys ...string) *place {
	p.needs = keys
	return p
}

// like sets the typical keys.
func (p *place) like(keys ...string) *place {
	p.shows = keys
	return p
}

var allPlaces = []*place{
	specPlace, goalPlace, coordinatorPlace, teamPlace, orchestratorPlace, agentPlace, agentDefaultsPlace, taskPlace, taskDefaultsPlace,
	provenancePlace, requiresPlace, inputPlace, fromPlace, messagePlace, dependencyPlace, usePlace, endpointPlace, fallbackPlace, pricePlace,
	policyPlace, rulePlace, translatePlace, summarizePlace, redactPlace, patternPlace, declassifyPlace, endorsePlace, renewPlace,
}

// An asking separates the values of an unsupported key: those that request something are an
// error, the others are accepted.
type asking struct {
	of       func(n *node) bool // whether the value requests something
	nothings []any              // the values that do not, as JSON
}

// asksUnlessNull is for keys whose every value but null requests something.
var asksUnlessNull = &asking{func(n *node) bool { return n.is != isNull }, []any{nil}}

// asksIfFilled is for keys whose empty lists, mappings and texts, false and null request nothing.
var asksIfFilled = &asking{func(n *node) bool {
	switch n.is {
	case isNull:
		return false
	case isBool:
		return n.text == "true"
	case isText:
		return n.text != ""
	case isList, isObject:
		return n.len() > 0
	}
	return true
}, []any{nil, false, "", []any{}, object{}}}

var asksIfNotPending = &asking{func(n *node) bool {
	return n.is != isNull && (n.is != isText || n.text != "pending")
}, []any{nil, "pending"}}
