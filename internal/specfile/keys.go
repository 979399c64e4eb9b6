package specfile

import (
	_ "embed"
	"slices"
	"strings"
)

// Status says what a key does.
type Status string

// The statuses.
const (
	Works   Status = "works"   // it does what it says
	Refused Status = "refused" // a key of the original that runteam does not support: an error, unless the value requests nothing
	Idle    Status = "idle"    // a key of the original that has no effect here: a warning
)

// A key is a line of the table.
type key struct {
	name   string
	kind   kind
	says   string
	status Status
}

// reason is the part of a description that says why a key is not supported.
func (k *key) reason() string {
	why, _, _ := strings.Cut(strings.ReplaceAll(k.says, "`", ""), "; ")
	return why
}

// instead says what to write instead of a key that is not supported: the text
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
	a     string // in messages: "an agent"; empty for a group that places include
	keys  []key
	index map[string]int
	needs []string // required keys
	shows []string // typical keys, for hints
	all   []*place // of its table
}

//go:embed keys.txt
var keyTable string

// placesByName has all places and groups, allPlaces the places in the order of the table.
var placesByName, allPlaces = readPlaces(keyTable)

// readPlaces reads the table, whose head describes its form.
func readPlaces(table string) (byName map[string]*place, all []*place) {
	byName = make(map[string]*place)
	var p *place
	status := Works
	for line := range strings.Lines(table) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimSpace(rest)
		switch name, begins := strings.CutSuffix(word, ":"); {
		case word == "", word == "#":
		case word == "=":
			p.include(byName, strings.Fields(rest))
		case line[0] == ' ':
			k := key{name: word, kind: anything, says: rest, status: status}
			if status == Works {
				kind, says, _ := strings.Cut(rest, " ")
				k.kind, k.says = kindOf(kind), strings.TrimSpace(says)
			}
			p.add(k)
		default:
			if status = Status(rest); begins || rest == "" {
				status = Works
			}
			if p = byName[name]; p == nil {
				p = &place{name: name, index: make(map[string]int)}
				byName[name] = p
			}
			if begins {
				a, shown, _ := strings.Cut(rest, ", such as ")
				p.a, p.shows = a, strings.Fields(shown)
				all = append(all, p)
			}
		}
	}
	for _, p := range all {
		p.all = all
	}
	return byName, all
}

// include adds the keys of another place: all of them, or all "but" some, or "only" some.
func (p *place) include(byName map[string]*place, words []string) {
	for _, k := range byName[words[0]].keys {
		if len(words) == 1 || slices.Contains(words[2:], k.name) == (words[1] == "only") {
			p.add(k)
		}
	}
}

func (p *place) add(k key) {
	p.index[k.name] = len(p.keys)
	p.keys = append(p.keys, k)
	if strings.HasPrefix(k.says, "required") {
		p.needs = append(p.needs, k.name)
	}
}

// nothings are the values, as JSON, that request nothing of a key that is not supported.
var nothings = []any{nil, false, "", []any{}, object{}}

// isRequested reports whether a value requests something, so is none of these.
func (*key) isRequested(n *node) bool {
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
}
