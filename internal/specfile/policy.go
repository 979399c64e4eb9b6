package specfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// readPolicy reads the policy.
func (r *reader) readPolicy() {
	defer func() { r.subject = nil }()
	main := r.places.main.spec
	if main.own("policy") == nil {
		r.readAsserts(main.own("assert"))
		return
	}
	r.subject = func() string { return "policy: " }
	f := r.policyFields(main.own("policy"))
	r.readAsserts(main.own("assert"), f.own("assert"))
	if f == nil {
		return
	}
	n := f.node
	r.places.policy = n
	p := &handoff.Policy{Default: handoff.Mode(text(f.own("default")))}
	byModel := true
	members{{"hideIdentity", &p.HideIdentity}, {"translateByModel", &byModel}}.read(f.own)
	p.NoTranslationByModel = !byModel
	p.Redact = r.policyRedaction(f.own("redact"))
	for i, e := range r.policyEntries(f, "rules", "rule") {
		p.Rules = append(p.Rules, r.policyRule(i, e))
	}
	for _, e := range r.policyEntries(f, "declassify", "declassify") {
		p.Declassify = append(p.Declassify, r.declassifier(e))
	}
	for _, e := range r.policyEntries(f, "endorse", "endorse") {
		d := handoff.Endorser{Entry: handoff.Entry{Origin: e.origin()}}
		entryMembers(&d.Entry).read(e.own)
		r.exactSides(e, &d.From, &d.To)
		p.Endorse = append(p.Endorse, d)
	}
	for _, e := range r.policyEntries(f, "renew", "renew") {
		d := handoff.Renewal{Entry: handoff.Entry{Origin: e.origin()}}
		append(entryMembers(&d.Entry), member{"ttlMs", &d.TTL}).read(e.own)
		r.exactSides(e, &d.From, &d.To)
		p.Renew = append(p.Renew, d)
	}
	if n.len() > 0 {
		r.file.Config.Policy = p
		r.checkPolicy(p, f)
		r.idleModes(p.Default)
	}
}

// idleModes warns of modes of agents that are wider than the policy's default and have no
// effect.
func (r *reader) idleModes(standard handoff.Mode) {
	width := []handoff.Mode{handoff.Minimal, handoff.Scoped, handoff.Full, ""}
	r.subject = nil
	for _, f := range r.places.agents {
		n := f.get("handoff")
		if n != nil && slices.Index(width, handoff.Mode(n.text)) > slices.Index(width, standard) {
			r.warn(n, "leave it out, or widen default of the policy", "handoff: no effect: default of the policy is %s", standard)
		}
	}
}

// origin returns the position of an object; zero for nil.
func (f *fields) origin() provenance.Position {
	if f == nil {
		return provenance.Position{}
	}
	return f.node.origin()
}

// policyEntries reads a list of a policy; an element that is not an object is nil.
func (r *reader) policyEntries(policy *fields, list, place string) []*fields {
	n := policy.own(list)
	all := make([]*fields, n.len())
	for i, item := range n.parts() {
		r.subject = func() string { return "policy: " + entryName(list, i, item) + ": " }
		all[i] = r.fields(item, place, nil)
	}
	return all
}

// entryName names an entry in a message: by its name, its pair or its number.
func entryName(list string, i int, n *node) string {
	what := map[string]string{"rules": "rule", "declassify": "declassifier", "endorse": "endorser", "renew": "renewal"}[list]
	name, from, to := text(n.get("name")), text(n.get("from")), text(n.get("to"))
	switch {
	case name != "":
		return what + " " + quote(name)
	case from != "" && to != "":
		return fmt.Sprintf("%s %s→%s", what, cut(withoutSecrets(from), 60), cut(withoutSecrets(to), 60))
	}
	return fmt.Sprintf("%s %d", what, i+1)
}

// policyRule reads one rule.
func (r *reader) policyRule(i int, f *fields) handoff.PairRule {
	if f == nil {
		return handoff.PairRule{}
	}
	r.subject = func() string { return "policy: " + entryName("rules", i, f.node) + ": " }
	p := handoff.PairRule{
		Redact: r.policyRedaction(f.own("redact")), Translate: r.translation(f.own("translate")), Origin: f.origin(),
		Reveal: revealOf(f.own("reveal"), func(word string) redact.Kind { return redact.Kind(word) }),
	}
	members{
		{"name", &p.ID}, {"from", &p.From}, {"to", &p.To}, {"mode", &p.Mode}, {"allow", &p.Allow}, {"block", &p.Block}, {"maxClassification", &p.Ceiling}, {"note", &p.Note},
	}.read(f.own)
	r.exactSides(f, &p.From, &p.To)
	// The gate checks the rest of a rule whose allow or reveal could not be read.
	if f.own("allow") == nil && f.node.get("allow") != nil {
		p.Allow = []task.Path{task.Whole}
	}
	if f.own("reveal") == nil && f.node.get("reveal") != nil {
		p.Reveal = map[redact.Kind][]task.Path{redact.IBAN: {task.Whole}}
	}
	return p
}

// exactSides replaces tool:SERVER/TOOL by the name of the tool as a reader, and tool:SERVER if
// the server has one tool; several are a problem.
func (r *reader) exactSides(f *fields, from, to *string) {
	for key, side := range map[string]*string{"from": from, "to": to} {
		all := r.file.Tools.exactReaders(*side)
		if len(all) > 1 {
			r.bad(f.own(key), "write an entry for each: "+r.file.Tools.respell(strings.Join(all, ", ")), "%s: %s has several tools", key, quote(*side))
		}
		*side = all[0]
	}
}

// policyRedaction reads what is redacted in addition to what always is.
func (r *reader) policyRedaction(n *node) handoff.Redaction {
	var out handoff.Redaction
	if n == nil {
		return out
	}
	f := r.fields(n, "redact", nil)
	for _, word := range textList(f.own("kinds")) {
		out.Kinds = append(out.Kinds, redact.Kind(word))
	}
	all := f.own("patterns")
	for i, item := range all.parts() {
		p := r.part(item, "pattern", fmt.Sprintf("patterns[%d]: ", i))
		var pattern redact.Pattern
		members{{"name", &pattern.Name}, {"regexp", &pattern.Regexp}}.read(p.own)
		out.Patterns = append(out.Patterns, pattern)
	}
	return out
}

// translation reads how delivered context is translated.
func (r *reader) translation(n *node) *handoff.Translation {
	if n == nil {
		return nil
	}
	f := r.fields(n, "translate", nil)
	t := &handoff.Translation{}
	members{{"fields", &t.Fields}, {"filter", &t.Filter}, {"recast", &t.Recast}}.read(f.own)
	if s := f.own("summarize"); s != nil {
		by := r.part(s, "summarize", "summarize: ")
		t.MaxTokens, t.ByModel = integer(by.own("maxTokens")), text(by.own("by")) == "model"
	}
	return t
}

// revealOf reads paths by kind; nil is nil.
func revealOf[K ~string](n *node, kind func(string) K) map[K][]task.Path {
	if n.len() == 0 {
		return nil
	}
	out := make(map[K][]task.Path, n.len())
	for _, member := range n.parts() {
		out[kind(member.key)] = pathList(member)
	}
	return out
}

func entryMembers(e *handoff.Entry) members {
	return members{{"name", &e.Name}, {"from", &e.From}, {"to", &e.To}, {"reason", &e.Reason}}
}

// declassifier reads a declassifier.
func (r *reader) declassifier(f *fields) handoff.Declassifier {
	if f == nil {
		return handoff.Declassifier{}
	}
	d := handoff.Declassifier{Entry: handoff.Entry{Origin: f.origin()}, LowerTo: label.Internal}
	append(entryMembers(&d.Entry), members{{"paths", &d.Paths}, {"lowerTo", &d.LowerTo}, {"approve", &d.Approve}, {"unsafeText", &d.UnsafeText}}...).read(f.own)
	r.exactSides(f, &d.From, &d.To)
	if d.UnsafeText {
		n := f.own("unsafeText")
		r.subject = func() string { return "policy: " + entryName("declassify", 0, f.node) + ": " }
		r.warn(n, "name paths that the producer's outputSchema bounds, and leave unsafeText out", "unsafeText: what it lets through can carry anything that %s has read", quote(d.From))
	}
	return d
}
