package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/llm"
)

// A message is one message of a request.
type message struct {
	role, content string
	calls         []llm.ToolCall
	provider      *llm.ProviderData // nil unless it is of the endpoint and the model that are called
	answers       string            // the ID of the call of which it is the result
}

// messages returns the messages, with the system prompt in the role that the endpoint
// accepts.
func (r *request) messages() []message {
	all := make([]message, 0, 1+len(r.Messages))
	system := r.System
	if system != "" && r.role() != mergedRole {
		all = append(all, message{role: r.role(), content: system})
		system = ""
	}
	for i := range r.Messages {
		given := &r.Messages[i]
		m := message{role: given.Role, content: given.Text, calls: given.ToolCalls, provider: r.model.returnable(given.Provider), answers: given.ToolCallID}
		if system != "" {
			if m.role != llm.User {
				all = append(all, message{role: llm.User, content: system})
			} else {
				m.content = system + "\n\n" + m.content
			}
			system = ""
		}
		all = append(all, m)
	}
	if r.System != "" && r.changes.role == mergedRole {
		r.warn("system prompt: the endpoint takes none for this model; it is sent at the start of the first message")
	}
	return all
}

// returnable returns the provider data of a message if this endpoint and model made it, else nil.
func (m *Model) returnable(d *llm.ProviderData) *llm.ProviderData {
	if d == nil || d.Endpoint != m.base || d.Model != m.name {
		return nil
	}
	return d
}

// appendMessages appends the messages as a JSON list. Members of provider data are copied byte for
// byte, which package json would not do.
func (r *request) appendMessages(raw []byte) ([]byte, error) {
	all := r.messages()
	if err := r.checkProviderData(all); err != nil {
		return nil, err
	}
	ids := r.callIDs(all)
	left := false // a member was left out
	raw = append(slices.Grow(raw, sizeOf(all)), '[')
	for i := range all {
		m := &all[i]
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, `{"role":`...)
		raw = appendText(raw, m.role)
		raw = r.appendContent(raw, m)
		if len(m.calls) > 0 {
			raw = append(raw, `,"tool_calls":[`...)
			for k := range m.calls {
				if k > 0 {
					raw = append(raw, ',')
				}
				var added llm.ProviderCall
				if m.provider != nil && k < len(m.provider.Calls) {
					added = m.provider.Calls[k]
				}
				raw = append(raw, `{"id":`...)
				raw = appendText(raw, ids.ofCall(added.ID, m.calls[k].ID))
				raw = append(raw, `,"type":"function","function":{"name":`...)
				raw = appendText(raw, m.calls[k].Name)
				raw = append(raw, `,"arguments":`...)
				raw = appendText(raw, objectOf(r.sentArguments(&m.calls[k])))
				raw = append(r.appendMembers(raw, ofFunction, added.Function, &left), '}')
				raw = append(r.appendMembers(raw, ofCall, added.Members, &left), '}')
			}
			raw = append(raw, ']')
		}
		if m.answers != "" || m.role == llm.ToolResult {
			raw = append(raw, `,"tool_call_id":`...)
			raw = appendText(raw, ids.ofResult(m.answers))
		}
		if m.provider != nil {
			raw = r.appendMembers(raw, ofMessage, m.provider.Message, &left)
		}
		if r.changes.emptyReasoning && m.role == llm.Assistant && !m.has(emptyMember) {
			raw = append(raw, `,"`+emptyMember+`":""`...)
		}
		raw = append(raw, '}')
	}
	if left {
		r.warn("messages: the endpoint refuses a member that it had added to a message itself; messages are sent back without it")
	}
	return append(raw, ']'), nil
}

// sizeOf returns about how many bytes messages take in a request.
func sizeOf(all []message) int {
	n := 0
	for i := range all {
		m := &all[i]
		n += 100 + len(m.content) + len(m.content)/16 + m.provider.Size()
		for k := range m.calls {
			n += 150 + len(m.calls[k].Arguments)*5/4
		}
	}
	return n
}

// appendText appends a text as a JSON string. Invalid UTF-8 is replaced.
func appendText(raw []byte, text string) []byte {
	raw, _ = jsontext.AppendQuote(raw, text)
	return raw
}

// objectOf returns the arguments of an earlier call as a JSON object. Endpoints that read
// them, such as Ollama, refuse a conversation in which a model wrote anything else.
func objectOf(arguments string) string {
	text := strings.TrimSpace(arguments)
	switch {
	case text == "":
		return "{}"
	case text[0] == '{' && json.Valid([]byte(text)):
		return arguments
	}
	raw, err := json.Marshal(map[string]string{"arguments": arguments})
	if err != nil {
		return "{}" // texts can always be encoded
	}
	return string(raw)
}

// thoughts returns the parts of a message with reasoning, a JSON list; nil if there are none.
func (r *request) thoughts(m *message) []byte {
	if m.provider == nil || m.role != llm.Assistant || r.changes.members[thoughts] {
		return nil
	}
	parts := bytes.TrimSpace(memberOf(m.provider.Message, thoughts))
	if len(parts) < len(`[{}]`) || parts[0] != '[' {
		return nil
	}
	return parts
}

// thoughts is the member of [llm.ProviderData] with the parts of the content that are reasoning.
const thoughts = "content"

// appendMembers appends the members of provider data that the endpoint takes, and sets left if there are
// others.
func (r *request) appendMembers(raw []byte, l level, object json.RawMessage, left *bool) []byte {
	for name, value := range partsOf(object) {
		switch text := unquoted(name); {
		case r.changes.members[string(text)]:
			*left = true
		case !isOfProtocol(l, text):
			raw = append(append(append(append(raw, ','), name...), ':'), value...)
		}
	}
	return raw
}

// has reports whether the provider data of a message has a member.
func (m *message) has(member string) bool {
	return m.provider != nil && memberOf(m.provider.Message, member) != nil
}

// checkProviderData refuses provider data that is too large or no JSON objects.
func (r *request) checkProviderData(all []message) error {
	total := 0
	for i := range all {
		d := all[i].provider
		if d == nil {
			continue
		}
		valid := isObject(d.Message)
		for k := range d.Calls {
			valid = valid && isObject(d.Calls[k].Members) && isObject(d.Calls[k].Function)
		}
		size := d.Size()
		total += size
		switch {
		case !valid:
			return r.model.fault(callfault.BadRequest, "the provider data of a message is not a JSON object; pass on that of the response unchanged")
		case size > llm.MaxProviderData:
			return r.model.fault(callfault.PromptTooLong, fmt.Sprintf("the provider data of a message has %d bytes, at most %d", size, llm.MaxProviderData))
		case total > llm.MaxConversationProviderData:
			return r.model.fault(callfault.PromptTooLong, fmt.Sprintf("what the endpoint needs back with the earlier messages has more than %d bytes; begin a new conversation", llm.MaxConversationProviderData))
		}
	}
	return nil
}

// isObject reports whether a text is a JSON object, or empty.
func isObject(raw json.RawMessage) bool {
	return len(raw) == 0 || raw[0] == '{' && jsontext.Value(raw).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}
