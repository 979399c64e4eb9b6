package openai

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"regexp"
	"sync"
)

const (
	maxCallID = 64 // bytes of an ID that is sent back
	shortID   = 9  // bytes of an ID of Mistral, which takes no others (docs.mistral.ai/capabilities/function_calling)
)

// isCallID reports whether an ID can be sent back: endpoints limit how long it may be, and which characters
// it may have.
func isCallID(id string) bool {
	for i := range len(id) {
		switch b := id[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '_', b == '-', b == ':', b == '.':
		default:
			return false
		}
	}
	return id != "" && len(id) <= maxCallID
}

// isShortID reports whether an ID has nine letters or digits, as those of Mistral.
func isShortID(id string) bool {
	for i := range len(id) {
		if letters[id[i]] == 0 {
			return false
		}
	}
	return len(id) == shortID && isCallID(id)
}

// callIDs are the IDs of the tool calls of a request. A call has the ID that this endpoint gave
// it, if that is unique in the conversation; else the caller's ID, or one that is made from it.
type callIDs struct {
	short   bool // made IDs have nine letters and digits
	only    bool // so have all
	theirs  map[string]bool
	taken   map[string]bool
	current map[string]string // the ID of the last call that has the caller's ID
}

// callIDs returns the IDs of a request, before the first call.
func (r *request) callIDs(all []message) *callIDs {
	s := &callIDs{short: r.changes.shortIDs || r.model.shortIDs.Load(), only: r.changes.shortIDs}
	for i := range all {
		if all[i].provider == nil {
			continue
		}
		for k := range all[i].provider.Calls {
			id := all[i].provider.Calls[k].ID
			if !isCallID(id) {
				continue
			}
			if s.theirs == nil {
				s.theirs = map[string]bool{}
			}
			s.theirs[id] = true
			s.short = s.short || isShortID(id)
		}
	}
	return s
}

// ofCall returns the ID of the next call, to which the endpoint and the caller gave these.
func (s *callIDs) ofCall(theirs, own string) string {
	if s.taken == nil {
		s.taken, s.current = map[string]bool{}, map[string]string{}
	}
	id := theirs
	if !isCallID(id) || s.only && !isShortID(id) || s.taken[id] {
		id = s.made(own)
	}
	s.taken[id], s.current[own] = true, id
	return id
}

// ofResult returns the ID of the call that a result answers.
func (s *callIDs) ofResult(own string) string {
	if id, ok := s.current[own]; ok {
		return id
	}
	return s.made(own)
}

// made returns a valid ID for the call to which the caller gave an ID.
func (s *callIDs) made(own string) string {
	free := func(id string) bool { return !s.taken[id] && !s.theirs[id] }
	if isCallID(own) && (!s.short || isShortID(own)) && free(own) {
		return own
	}
	for n := 0; ; n++ {
		id := digestID(own, n)
		if !s.short {
			id = "call_" + id
		}
		if free(id) {
			return id
		}
	}
}

// digestID returns nine letters and digits made of a text and a number.
func digestID(text string, n int) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", n, text))
	bits := binary.BigEndian.Uint64(sum[:])
	var id [shortID]byte
	for i := range id {
		id[i] = digits[bits%uint64(len(digits))]
		bits /= uint64(len(digits))
	}
	return string(id[:])
}

// refusesIDs reports whether the endpoint refuses the IDs of calls. Those of nine letters and digits are taken everywhere.
func (f *refusal) refusesIDs(r *request) bool {
	if r.changes.shortIDs || !aboutIDs().MatchString(f.text) {
		return false
	}
	for i := range r.Messages {
		if len(r.Messages[i].ToolCalls) > 0 {
			return true
		}
	}
	return false
}

// aboutIDs matches Mistral's words, "tool call id was call_1_1 but must be a-z, a-z, 0-9, with a length of 9",
// and similar ones, "'messages[2].tool_calls[0].id': string too long" and "tool_use.id: string should match pattern", in lower case.
var aboutIDs = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bids?\b(.|\n){0,120}\b(9|nine)\b|\b(9|nine)\b(.|\n){0,120}\bids?\b|tool_call_?id(.|\n){0,120}\b(9|nine)\b|` +
		`\b(id|tool_call_?id)\b(.|\n){0,60}\b(too long|match pattern|maximum length)\b`)
})
