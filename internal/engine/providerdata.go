package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
)

// providerTurns are what providers need back with the turns of a conversation: one attempt under one
// policy. They are no part of its prompts, which are built from what passed the gate, so keys and
// digests do not depend on them.
type providerTurns struct {
	turns []*llm.ProviderData // by turn, from the first; nil where nothing is needed
	bytes int
}

// add adds what a provider needs back with a turn that called tools. That of any other turn goes.
func (p *providerTurns) add(turn int, d *llm.ProviderData) {
	if d == nil {
		return
	}
	for len(p.turns) < turn {
		p.turns = append(p.turns, nil)
	}
	p.turns[turn-1] = d
	p.bytes += d.Size()
}

// providerTurnsOf returns what providers need back with the turns before a model call. The first call of a
// conversation has none.
func providerTurnsOf(o purpose) (none providerTurns) {
	if t, later := o.(*turn); later {
		return t.of.provider
	}
	return none
}

// check returns an error if what the provider needs back with a reply to the conversation cannot be kept.
// It drops what is not of the calls of the reply.
func (p *providerTurns) check(reply *agent.Reply) error {
	d := reply.Provider
	if d == nil {
		return nil
	}
	size, n := d.Size(), len(d.Calls)
	switch {
	case size == 0 || n > 0 && n != len(reply.ToolCalls):
		reply.Provider = nil // an agent written in Go has changed the calls
		return nil
	case size > llm.MaxProviderData:
		return fmt.Errorf("%w: what the provider needs back with the calls of one turn has %d bytes, at most %d; lower the reasoning effort, or use another model", brief.ErrTooLarge, size, llm.MaxProviderData)
	case p.bytes+size > llm.MaxConversationProviderData:
		return fmt.Errorf("%w: what the provider needs back with the turns of the conversation has %d bytes, at most %d; split the task", brief.ErrTooLarge, p.bytes+size, llm.MaxConversationProviderData)
	}
	for _, raw := range membersOf(d) {
		if len(raw) > 0 && (raw[0] != '{' || !json.Valid(raw)) {
			return fmt.Errorf("%w: what the provider needs back with the calls is no JSON object", brief.ErrInvalid)
		}
	}
	return nil
}

// membersOf returns the objects of members: those of the message, then those of each call and its function.
func membersOf(d *llm.ProviderData) []json.RawMessage {
	list := []json.RawMessage{d.Message}
	for i := range d.Calls {
		list = append(list, d.Calls[i].Members, d.Calls[i].Function)
	}
	return list
}

// returned lists the members of a turn with these calls, for the receipt of the prompt that follows.
func (p *providerTurns) returned(turn int, said []llm.ToolCall, words *redact.Redactor) (list []prompt.Returned) {
	if turn > len(p.turns) || p.turns[turn-1] == nil {
		return nil
	}
	for i, raw := range membersOf(p.turns[turn-1]) {
		if names := memberNames(raw, words); len(names) > 0 {
			r := prompt.Returned{Turn: turn, Members: names}
			if i > 0 {
				r.Call = said[(i-1)/2].ID
			}
			list = append(list, r)
		}
	}
	return list
}

// maxMemberNames bounds the names of members in an entry of a receipt.
const maxMemberNames = 16

// memberNames returns the names of the members of an object, sorted. The provider chooses them, so what
// could be more than a name, or would be redacted, is replaced.
func memberNames(raw json.RawMessage, words *redact.Redactor) (names []string) {
	var members map[string]json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &members) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !memberName().MatchString(name) || isRedacted(words, name) {
			name = "(another name)"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > maxMemberNames {
		names = append(names[:maxMemberNames], fmt.Sprintf("(%d more)", len(names)-maxMemberNames))
	}
	return names
}

// isRedacted reports whether a text would be redacted. What cannot be checked would be.
func isRedacted(words *redact.Redactor, text string) bool {
	clean, _, err := words.Text(text)
	return err != nil || clean != text
}

var memberName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,39}$`) })

// providerEntry returns what a journal stores of the provider data of a turn that called tools, behind the
// turn whose session is given.
func providerEntry(reply *agent.Reply, before string) *record.ProviderData {
	if reply.Provider == nil || len(reply.ToolCalls) == 0 {
		return nil
	}
	return &record.ProviderData{Before: before, Data: reply.Provider}
}

// priorProviderData returns what the provider needs back with a turn of an earlier process, by a policy and
// behind the turn whose session is given. It is not ok if the turn cannot be taken: the data was not stored or cannot
// be decrypted, or the turn is of another conversation.
func priorProviderData(e *record.AgentCall, m *memo.Memo, policy, before string) (d *llm.ProviderData, ok bool) {
	switch of := e.Provider; {
	case of == nil || m.Is(memo.Strict): // in a replay no model is called
		return nil, true
	case !m.Is(memo.Own) || of.Data == nil || of.Before != before || e.Policy != policy:
		return nil, false
	default:
		return of.Data, true
	}
}
