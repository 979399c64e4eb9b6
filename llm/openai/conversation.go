package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

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

// A contentForm is what stands for the missing text of a message with tool calls. The first is
// tried first.
type contentForm int

const (
	noContent    contentForm = iota // Amazon Bedrock and gateways to it refuse an empty text
	nullContent                     // servers whose messages must have the member
	emptyContent                    // mistral-common refuses null
	spaceContent
)

// appendContent appends the content of a message: its text, after the reasoning that the model wrote
// as parts of the content. Mistral asks for these parts in later turns
// (docs.mistral.ai/capabilities/reasoning, examples/src/reasoning_multi_turn.ts of @mistralai/mistralai).
func (r *request) appendContent(raw []byte, m *message) []byte {
	if parts := r.thoughts(m); len(parts) > 0 {
		raw = append(append(raw, `,"content":`...), parts[:len(parts)-1]...)
		if m.content != "" {
			raw = append(raw, `,{"type":"text","text":`...)
			raw = append(appendText(raw, m.content), '}')
		}
		return append(raw, ']')
	}
	form, content := emptyContent, m.content
	if len(m.calls) > 0 {
		if form = r.changes.content; strings.TrimSpace(content) == "" {
			content = ""
		}
	}
	switch {
	case content != "" || form == emptyContent:
		return appendText(append(raw, `,"content":`...), content)
	case form == nullContent:
		return append(raw, `,"content":null`...)
	case form == spaceContent:
		return append(raw, `,"content":" "`...)
	}
	return raw
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

// refusesContent reports whether the endpoint refused the form in which messages with tool calls have
// no text.
func refusesContent(r *request, f *refusal) bool {
	if r.changes.content == spaceContent || !aboutContent().MatchString(f.text) {
		return false
	}
	for i := range r.Messages {
		if m := &r.Messages[i]; len(m.ToolCalls) > 0 && strings.TrimSpace(m.Text) == "" {
			return true
		}
	}
	return false
}

// aboutContent matches the words with which endpoints refuse a missing or an empty content, in lower
// case: "messages.1.content: field required" of FastAPI, "'content' must be a string" of vLLM's templates,
// "expected one of either content or tool_calls, but not none" of mistral-common, "the text field in the
// contentblock object is blank" and "text content blocks must be non-empty" of Amazon Bedrock and Anthropic,
// "invalid type: null" of servers in Rust.
var aboutContent = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(content|text)s?\b(.|\n){0,80}\b(missing|required|empty|blank|null|none|non-?empty|must|should|expected|valid)\b|` +
		`\b(missing|required|empty|blank|null|none|invalid|expected)\b(.|\n){0,80}\b(content|text)s?\b|\binvalid type: null\b`)
})

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
func refusesMember(r *request, f *refusal) bool { return f.member(r) != "" }

// member returns the name of the member that the endpoint refuses, or "".
func (f *refusal) member(r *request) string {
	if !strings.Contains(f.text, "_") && !strings.Contains(f.text, "content") && !unsupported().MatchString(f.text) && !strings.Contains(f.text, "extra") {
		return ""
	}
	isMissing := f.isAbsent()
	isUnnamed := false
	refused := func(l level, object json.RawMessage) string {
		for quoted := range partsOf(object) {
			name := string(unquoted(quoted))
			switch {
			case r.changes.members[name] || !isUnnamed && !names(f.text, lower(name)):
			case l == ofMessage && name == thoughts:
				if aboutParts().MatchString(f.text) {
					return name
				}
			case !isMissing && !isOfProtocol(l, []byte(name)):
				return name
			}
		}
		return ""
	}
	for {
		for i := range r.Messages {
			d := r.model.returnable(r.Messages[i].Provider)
			if d == nil {
				continue
			}
			name := refused(ofMessage, d.Message)
			for k := 0; k < len(d.Calls) && name == ""; k++ {
				if name = refused(ofCall, d.Calls[k].Members); name == "" {
					name = refused(ofFunction, d.Calls[k].Function)
				}
			}
			if name != "" {
				return name
			}
		}
		if isUnnamed || !unnamed().MatchString(f.text) {
			return ""
		}
		isUnnamed = true
	}
}

// aboutParts matches the refusal of a content that is a list of parts, in lower case.
var aboutParts = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(string|str|text|type|array|list|sequence|parts?|thinking|reasoning)\b`)
})

// dropMember leaves the refused member out.
func dropMember(r *request, f *refusal, next *changes) {
	refused := map[string]bool{f.member(r): true}
	maps.Copy(refused, next.members)
	next.members = refused
}

// missesReasoning reports whether the endpoint requires reasoning_content of all messages of the
// assistant, some of which another model wrote, or are known without it.
func missesReasoning(r *request, f *refusal) bool {
	return !r.changes.emptyReasoning && !r.changes.members[emptyMember] && strings.Contains(f.text, emptyMember) && f.isAbsent()
}
