package openai

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"sync"
)

// absent matches the words with which an endpoint says that something is missing.
var absent = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bmissing\b|\brequired\b|\bmust (be|have|include|contain)\b|\bpass(ed)? back\b|\bnot (found|provided|present)\b`)
})

// isAbsent reports whether the endpoint says that something is missing, and not that it does not take it.
func (f *refusal) isAbsent() bool {
	return absent().MatchString(f.text) && !unsupported().MatchString(f.text)
}

// unnamed matches a refusal of members that it does not name, "extra fields not permitted". Each of them is left out in turn.
var unnamed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bextra (fields?|inputs?)\b`)
})

// refusesMember reports whether the endpoint refused a member of provider data.
func (f *refusal) refusesMember(r *request) bool { return f.member(r) != "" }

// member returns the name of the member that the endpoint refuses, or "".
func (f *refusal) member(r *request) (refused string) {
	if !strings.Contains(f.text, "_") && !strings.Contains(f.text, "content") && !unsupported().MatchString(f.text) && !strings.Contains(f.text, "extra") {
		return ""
	}
	isMissing, isUnnamed := f.isAbsent(), unnamed().MatchString(f.text)
	for l, name := range r.sentMembers {
		isNamed := names(f.text, lower(name))
		switch {
		case !isNamed && (!isUnnamed || refused != ""):
		case l == ofMessage && name == thoughts && !aboutParts().MatchString(f.text):
		case isMissing && (l != ofMessage || name != thoughts):
		case isNamed:
			return name
		default:
			refused = name
		}
	}
	return refused
}

// sentMembers yields the members of provider data that are sent, of each message.
func (r *request) sentMembers(yield func(l level, name string) bool) {
	of := func(l level, object json.RawMessage) bool {
		for quoted := range partsOf(object) {
			name := string(unquoted(quoted))
			isSent := !r.changes.members[name] && (!isOfProtocol(l, []byte(name)) || l == ofMessage && name == thoughts)
			if isSent && !yield(l, name) {
				return false
			}
		}
		return true
	}
	for i := range r.Messages {
		d := r.model.returnable(r.Messages[i].Provider)
		if d == nil {
			continue
		}
		if !of(ofMessage, d.Message) {
			return
		}
		for k := range d.Calls {
			if !of(ofCall, d.Calls[k].Members) || !of(ofFunction, d.Calls[k].Function) {
				return
			}
		}
	}
}

// aboutParts matches the refusal of a content that is a list of parts, in lower case.
var aboutParts = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(string|str|text|type|array|list|sequence|parts?|thinking|reasoning)\b`)
})

// dropMember leaves the refused member out.
func dropMember(f *refusal, r *request, next *changes) { next.dropMember(f.member(r)) }

// dropMember leaves a member out.
func (c *changes) dropMember(name string) {
	refused := map[string]bool{name: true}
	maps.Copy(refused, c.members)
	c.members = refused
}

// mayRefuseMembers reports whether the endpoint may have refused the members: it gives no reason.
func (f *refusal) mayRefuseMembers(r *request) bool {
	for range r.sentMembers {
		return f.noReason
	}
	return false
}

// dropMembers leaves all members out, and takes back what was tried with them.
func dropMembers(_ *refusal, r *request, next *changes) {
	for _, name := range r.sentMembers {
		next.dropMember(name)
	}
	next.content = noContent
	if known := r.model.changes.Load(); known != nil {
		next.content = known.content
	}
}

// missesReasoning reports whether the endpoint requires reasoning_content of all messages of the
// assistant, some of which another model wrote, or are known without it.
func (f *refusal) missesReasoning(r *request) bool {
	return !r.changes.emptyReasoning && !r.changes.members[emptyMember] && strings.Contains(f.text, emptyMember) && f.isAbsent()
}
