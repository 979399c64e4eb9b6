package specfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// fields are the valid values of an object, by key.
type fields struct {
	place    *place
	node     *node
	vals     map[string]*node
	defaults *fields // where values come from that are not here

	// Of an agent, the coordinator or an entry of a fallback:
	link     *link     // where the settings of its connection are written
	fallback []*fields // the entries of its fallback
}

// model returns the model that the options set, or "".
func (f *fields) model() string {
	if f.link == nil {
		return ""
	}
	return f.link.option
}

// get returns the value of a key, from here or from the defaults, or nil.
func (f *fields) get(name string) *node {
	for ; f != nil; f = f.defaults {
		if n := f.own(name); n != nil {
			return n
		}
	}
	return nil
}

// own returns the value of a key of this object, or nil.
func (f *fields) own(name string) *node {
	if f == nil {
		return nil
	}
	return f.vals[name]
}

// unread reports whether the value of a key, here or in the defaults, is not known because it is
// invalid or its key is misspelled.
func (f *fields) unread(name string) bool {
	for ; f != nil; f = f.defaults {
		if f.own(name) == nil && (f.node.get(name) != nil || misspelled(f.node, name, f.place)) {
			return true
		}
	}
	return false
}

// fields reads an object by the table of a place. It reports a value that is not an object
// and returns nil, which has no values.
func (r *report) fields(n *node, place string, defaults *fields) *fields {
	return r.read(n, placesByName[place], "", defaults)
}

// part is fields for an object inside another one; where begins messages about required keys.
func (r *report) part(n *node, place, where string) *fields {
	return r.read(n, placesByName[place], where, nil)
}

func (r *report) read(n *node, p *place, where string, defaults *fields) *fields {
	if n.is != isObject {
		r.bad(n, "write "+sample(p), "%s where %s belongs", n.describe(), p.a)
		return nil
	}
	f := &fields{place: p, node: n, vals: make(map[string]*node), defaults: defaults}
	for _, value := range n.parts() {
		if k, known := p.index[value.key]; !known {
			r.unknown(value, p)
		} else if r.takes(value, &p.keys[k]) {
			f.vals[value.key] = value
		}
	}
	r.needs(n, p, where)
	return f
}

// sample returns an object with typical keys of a place, for hints.
func sample(p *place) string {
	shown := p.shows
	if len(shown) == 0 {
		shown = names(p, Works)
		shown = shown[:min(len(shown), 3)]
	}
	return "{" + strings.Join(shown, ": …, ") + ": …}"
}

// takes checks the value of a known key, reports problems and returns whether the value can
// be used.
func (r *report) takes(value *node, k *key) bool {
	switch k.status {
	case Refused:
		if k.isRequested(value) {
			r.badKey(value, ErrRefused, k.instead(), "%s: not supported: %s", k.name, k.reason())
		}
		return false
	case Idle:
		r.warnKey(value, "", "%s: no effect here: %s", k.name, k.says)
		return false
	}
	if !k.kind.fits(value) {
		r.bad(value, k.kind.instead(value), "%s: %s where %s belongs", k.name, r.describe(value, k.name), k.kind.want)
		return false
	}
	return k.kind.check == nil || r.passes(k.kind.check, k.name, value)
}

// describe describes a value unless it may be a credential.
func (r *report) describe(n *node, key string) string {
	if soundsSecret(key) && n.is != isNull {
		return "something else"
	}
	return n.describe()
}

// unknown reports a key that the place does not have, with a suggestion.
func (r *report) unknown(n *node, p *place) {
	if len(r.found) >= tooMany {
		return
	}
	r.badKey(n, ErrUnknown, suggestKey(n.key, p), "unknown key %s in %s", quote(n.key), p.a)
}

// refuse reports keys that an object must not have beside others.
func (f *fields) refuse(r *report, keys []string, why, hint string) {
	for _, key := range keys {
		if n := f.own(key); n != nil {
			r.badKey(n, ErrInvalid, hint, "%s: %s", key, why)
		}
	}
}

// suggestKey says what to write instead of an unknown key: a synonym, a key with a similar
// spelling, or else which keys there are.
func suggestKey(name string, p *place) string {
	if best := synonym(name, p); best != "" {
		return "did you mean " + best + "?"
	}
	if best := nearestOf(name, names(p, Works)...); best != "" {
		return "did you mean " + best + "?"
	}
	if best := nearestOf(name, names(p)...); best != "" {
		if p.keys[p.index[best]].status == Refused {
			return "remove it; " + best + " is not supported"
		}
		return "remove it; " + best + " has no effect here"
	}
	if home := placesWith(name, p.all); home != "" {
		return name + " is a key of " + home
	}
	const most = 10
	known := names(p, Works)
	if more := len(known) - most; more > 2 {
		return fmt.Sprintf("known here: %s and %d more", strings.Join(known[:most], ", "), more)
	}
	return "known here: " + strings.Join(known, ", ")
}

// misspelled reports whether an object has an unknown key that is probably a misspelling of key.
func misspelled(n *node, key string, p *place) bool {
	return slices.ContainsFunc(n.kids, func(member node) bool {
		_, known := p.index[member.key]
		return !known && suggestKey(member.key, p) == "did you mean "+key+"?"
	})
}

// writes reports whether an object of a place has a key, or one that is probably a misspelling of
// it.
func (n *node) writes(key, place string) bool {
	return n.get(key) != nil || misspelled(n, key, placesByName[place])
}

// needs reports required keys that an object does not have.
func (r *report) needs(n *node, p *place, before string) {
	for _, name := range p.needs {
		if n.get(name) == nil && !misspelled(n, name, p) {
			r.bad(n, "write "+name+": "+exampleOf(p, name), "%s%s: it is missing", before, name)
		}
	}
}

// names returns the keys of a place with one of the statuses; with none given, all.
func names(p *place, only ...Status) []string {
	var out []string
	for _, k := range p.keys {
		if len(only) == 0 || slices.Contains(only, k.status) {
			out = append(out, k.name)
		}
	}
	return out
}

// placesWith returns which of some places have a key of this name.
func placesWith(name string, all []*place) string {
	var out []string
	for _, p := range all {
		if i, ok := p.index[name]; ok && p.keys[i].status == Works && !strings.HasSuffix(p.name, "Defaults") {
			out = append(out, p.a)
		}
	}
	return enumerate(out, "or")
}

// A report collects the problems and warnings of a spec.
type report struct {
	found    []finding
	problems int // how many were reported, though no more than tooMany are collected
	warned   []finding
	subject  func() string // prefix of messages that names what is being read; nil for none
	mine     func() string // subject of the agent or task that is being read
}

// bad reports an invalid value.
func (r *report) bad(n *node, hint, format string, args ...any) {
	r.badAtAs(n.src, n.at, ErrInvalid, hint, format, args...)
}

// badAs reports a problem of a value.
func (r *report) badAs(n *node, err error, hint, format string, args ...any) {
	r.badAtAs(n.src, n.at, err, hint, format, args...)
}

// badKey reports a problem of the key of a member.
func (r *report) badKey(n *node, err error, hint, format string, args ...any) {
	r.badAtAs(n.src, n.keyAt, err, hint, format, args...)
}

// badAt reports what is invalid at a byte of a source.
func (r *report) badAt(src *source, at int, hint, format string, args ...any) {
	r.badAtAs(src, at, ErrInvalid, hint, format, args...)
}

// badAtAs reports a problem at a byte of a source.
func (r *report) badAtAs(src *source, at int, err error, hint, format string, args ...any) {
	if r.problems++; len(r.found) < tooMany {
		r.found = append(r.found, finding{src, at, Problem{Message: r.about() + fmt.Sprintf(format, args...), Hint: hint, Err: err}})
	}
}

// warn notes a value that is accepted but probably unintended.
func (r *report) warn(n *node, hint, format string, args ...any) {
	r.warnAt(n.src, n.at, hint, format, args...)
}

// warnKey is warn for the key of a member.
func (r *report) warnKey(n *node, hint, format string, args ...any) {
	r.warnAt(n.src, n.keyAt, hint, format, args...)
}

// warnAt notes what is accepted but probably unintended at a byte of a source.
func (r *report) warnAt(src *source, at int, hint, format string, args ...any) {
	if len(r.warned) < tooMany {
		r.warned = append(r.warned, finding{src, at, Problem{Message: r.about() + fmt.Sprintf(format, args...), Hint: hint}})
	}
}

// about returns the prefix of messages.
func (r *report) about() string {
	if r.subject == nil {
		return ""
	}
	return r.subject()
}

// maxProblems bounds how many problems are reported, tooMany how many are collected before
// they are sorted.
const (
	maxProblems = 100
	tooMany     = 1000
)

// A finding is a problem without its line and excerpt.
type finding struct {
	src *source // nil for an option
	at  int
	Problem
}

// locate turns findings into problems with excerpts: sorted, without duplicates, at most
// maxProblems.
func locate(found []finding) []Problem {
	slices.SortStableFunc(found, func(a, b finding) int {
		if a.src == nil || b.src == nil {
			return order(a.src) - order(b.src)
		}
		if a.src != b.src {
			return a.src.order - b.src.order
		}
		return a.at - b.at
	})
	type same struct {
		src     *source
		at      int
		message string
	}
	seen := make(map[same]bool)
	var out []Problem
	left := 0
	for _, f := range found {
		if id := (same{f.src, f.at, f.Message}); seen[id] {
			continue
		} else {
			seen[id] = true
		}
		if len(out) == maxProblems {
			left++
			continue
		}
		out = append(out, f.place())
	}
	if left > 0 {
		out = append(out, Problem{Message: fmt.Sprintf("and %d more", left), Hint: "fix these first", Err: errors.New("too many problems")})
	}
	return out
}

func order(s *source) int {
	if s == nil {
		return 1 << 30
	}
	return s.order
}

// place fills in file, line, column and excerpt, and removes control characters and secrets
// from the texts, which may quote values.
func (f *finding) place() Problem {
	p := f.Problem
	p.File = withoutSecrets(p.File)
	p.Message, p.Hint = withoutSecrets(strings.Map(printable, p.Message)), withoutSecrets(strings.Map(printable, p.Hint))
	if f.src == nil {
		return p
	}
	f.src.conceal()
	p.File = withoutSecrets(f.src.path)
	p.Line, p.Column = f.src.place(f.at)
	p.Excerpt = f.src.excerpt(f.at)
	return p
}
