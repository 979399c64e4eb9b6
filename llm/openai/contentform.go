package openai

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/runteam/runteam/llm"
)

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

// refusesContent reports whether the endpoint refused the form in which messages with tool calls have
// no text.
func (f *refusal) refusesContent(r *request) bool {
	return r.canChangeContent() && aboutContent().MatchString(f.text)
}

// mayRefuseContent reports whether the endpoint may have done so: it names no cause, or fails in a template.
func (f *refusal) mayRefuseContent(r *request) bool {
	return r.canChangeContent() && (f.noReason || f.isUnclear && !f.hasOtherCause(r) || aboutTemplate().MatchString(f.message))
}

// nextContent records the refused form.
func nextContent(_ *refusal, _ *request, next *changes) { next.content++ }

// canChangeContent reports whether a message has calls without a text, and another form for that is left.
func (r *request) canChangeContent() bool {
	return r.changes.content < spaceContent && slices.ContainsFunc(r.Messages, func(m llm.Message) bool {
		return len(m.ToolCalls) > 0 && strings.TrimSpace(m.Text) == ""
	})
}

// aboutContent matches the words with which endpoints refuse a missing or an empty content, in lower
// case: "messages.1.content: field required" of FastAPI, "'content' must be a string" of vLLM's templates,
// "'dict object' has no attribute 'content'" of templates, "expected one of either content or tool_calls,
// but not none" of mistral-common, "the text field in the contentblock object is blank" and "text content
// blocks must be non-empty" of Amazon Bedrock and Anthropic, "invalid type: null" of servers in Rust.
var aboutContent = sync.OnceValue(func() *regexp.Regexp {
	const missing = `\b(missing|required|empty|blank|null|nil|none|undefined|non-?empty|must|should|expected|invalid|valid|no attribute)\b`
	const near = `(.|\n){0,80}`
	return regexp.MustCompile(`\b(content|text)s?\b` + near + missing + `|` + missing + near + `\b(content|text)s?\b|\binvalid type: null\b`)
})

// aboutTemplate matches the words with which a template of a conversation fails, in lower case: "can only
// concatenate str (not "nonetype") to str", "'nonetype' object is not iterable", "jinja exception". Servers
// report it as an error of their own.
var aboutTemplate = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bnonetype\b|\bjinja|\bchat[ _]?template\b|\bnone\b.{0,20}\bhas no (attribute|element)\b|\b(null|undefined)\b.{0,30}\b(row|line|column|callable|attribute|concatenate)\b`)
})

// hasOtherCause reports whether a refusal is about another part of the request than the content: it names a
// setting, a member of provider data or another part of the protocol, or the words are about something else.
func (f *refusal) hasOtherCause(r *request) bool {
	if otherCause().MatchString(f.message) || f.param != "" && !strings.Contains(f.param, "messages") {
		return true
	}
	for _, name := range r.sentMembers {
		if name != thoughts && names(f.message, lower(name)) {
			return true
		}
	}
	for _, name := range parameter().FindAllString(f.message, -1) {
		if !aboutTemplate().MatchString(name) {
			return true
		}
	}
	return false
}

var (
	// parameter matches the name of a parameter in a text.
	parameter = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b[a-z]+(_[a-z]+)+\b`) })

	// otherCause matches words that are not about an empty text, in lower case.
	otherCause = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\b(temperature|seed|penalty|stop|stream|models?|images?|audio|vision|roles?|signature|thought|thinking|reasoning|ids?|tools?|functions?|schemas?|` +
			`follow(ed|s|ing)?|preced(es|ed|ing)|alternate|limits?|maximum|exceed(s|ed|ing)?|tokens?|quota|credits?|balance|billing|payment|keys?|permissions?|denied|forbidden|` +
			`polic(y|ies)|safety|moderation|filter(ed)?|sensitive|inappropriate|overloaded|capacity|timeout|unsupported|extra|unknown|unexpected|unrecognized)\b|` +
			`\btoo (long|many|large|big)\b|\btimed out\b|\btry again\b|\bauth|\bnot (supported|allowed|enabled|available)\b|\bdoes not support\b`)
	})
)
