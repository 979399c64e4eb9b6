package openai

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/runteam/runteam/llm"
)

// The names of the limit on a reply.
const (
	maxTokens           = "max_tokens"
	maxCompletionTokens = "max_completion_tokens"
)

// The ways to send a system prompt.
const (
	systemRole    = "system"
	developerRole = "developer"
	mergedRole    = "merge" // at the start of the first message of the user
)

// A setting is an optional setting of a request.
type setting struct {
	key   string
	names *regexp.Regexp // matches the names of the setting in errors, in lower case
	value func(*llm.Request) (value any, set bool)
}

// settings are left out once an endpoint refused them. top_p precedes temperature because
// some endpoints accept only one of the two.
var settings = [...]setting{
	{"top_p", regexp.MustCompile(`\btop_?p\b`), func(r *llm.Request) (any, bool) { return r.TopP, r.TopP != nil }},
	{"temperature", regexp.MustCompile(`\btemperature\b`), func(r *llm.Request) (any, bool) { return r.Temperature, r.Temperature != nil }},
	{"seed", regexp.MustCompile(`\bseed\b`), func(r *llm.Request) (any, bool) { return r.Seed, r.Seed != nil }},
	{"frequency_penalty", regexp.MustCompile(`\b(frequency_?)?penalty\b`), func(r *llm.Request) (any, bool) { return r.FrequencyPenalty, r.FrequencyPenalty != nil }},
	{"presence_penalty", regexp.MustCompile(`\b(presence_?)?penalty\b`), func(r *llm.Request) (any, bool) { return r.PresencePenalty, r.PresencePenalty != nil }},
	{"reasoning_effort", regexp.MustCompile(`\breasoning[_.]?effort\b|does not support thinking`), func(r *llm.Request) (any, bool) { return r.ReasoningEffort, r.ReasoningEffort != "" }},
}

// settingAdaptations returns the adaptations that leave out one of the settings each.
func settingAdaptations() []adaptation {
	var all []adaptation
	for i, s := range settings {
		all = append(all, adaptation{
			refused: func(c *call) bool {
				_, set := s.value(&c.req)
				return set && !c.changes.leftOut[i] && c.refusal.rejects(s.names)
			},
			change: func(_ *call, next *changes) { next.leftOut[i] = true },
		})
	}
	return all
}

// unsupported matches the words with which endpoints say that they do not support a
// setting, in lower case. Words about a value out of range are not among them.
var unsupported = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`unsupported|not support|unknown|unrecognized|unexpected|not permitted|not allowed|not available|not enabled|` +
		`deprecated|only the default|only .{0,20}\b(is|are) (allowed|supported)|may only be set|cannot both|incompatible|not compatible`)
})

// rejects reports whether the endpoint does not support a setting with these names. An
// error that lists the supported values is about the value, which the user must correct.
func (r *refusal) rejects(names *regexp.Regexp) bool {
	if strings.Contains(r.text, "supported values are") {
		return false
	}
	if param := lower(r.param); param != "" && !names.MatchString(param) &&
		slices.ContainsFunc(settings[:], func(s setting) bool { return s.names.MatchString(param) }) {
		return false
	}
	return names.MatchString(r.text) && unsupported().MatchString(r.text)
}

// refusedTokensKey reports whether the endpoint knows the limit on the reply only under
// its other name.
func (c *call) refusedTokensKey() bool {
	return c.req.MaxTokens > 0 && !c.changes.otherTokens && c.refusal.rejects(tokensKeys[c.model.maxTokens])
}

// tokensKeys matches the names of the limit on a reply in errors.
var tokensKeys = map[string]*regexp.Regexp{
	maxTokens:           regexp.MustCompile(`\bmax_?tokens\b`),
	maxCompletionTokens: regexp.MustCompile(`\bmax_?completion_?tokens\b`),
}

// tokensKey returns the name under which the limit on the reply is sent.
func (c *call) tokensKey() string {
	switch {
	case !c.changes.otherTokens:
		return c.model.maxTokens
	case c.model.maxTokens == maxTokens:
		return maxCompletionTokens
	}
	return maxTokens
}

// role returns how the system prompt is sent.
func (c *call) role() string { return cmp.Or(c.changes.role, c.model.role) }

// refusedDeveloper reports whether the endpoint does not know the role "developer".
func (c *call) refusedDeveloper() bool {
	return c.req.System != "" && c.role() == developerRole && strings.Contains(c.refusal.text, developerRole)
}

// refusedSystem reports whether the model, or the chat template of the server, has no
// system prompt.
func (c *call) refusedSystem() bool {
	return c.req.System != "" && c.role() == systemRole && noSystem().MatchString(c.refusal.text)
}

// noSystem matches the words of templates of Gemma ("System role not supported") and
// Mistral ("Only user and assistant roles are supported!", "Conversation roles must
// alternate user/assistant/user/assistant/..."), of OpenAI ("'messages[0].role' does
// not support 'system' with this model") and of Gemini ("Developer instruction is not
// enabled for models/gemma-3-27b-it"), in lower case.
var noSystem = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bsystem['"` + "`" + `]? (role|message|prompt|instruction)s?\b.{0,40}\b(not|unsupported)\b|` +
		`\b(not support|unsupported|unknown|unexpected|invalid)\b.{0,40}\bsystem\b|role['"` + "`" + `]?:? ?['"` + "`" + `]?system\b.{0,40}\b(not|unsupported)\b|` +
		`\bdeveloper instruction is not enabled\b|\bonly user and assistant\b|\broles must alternate\b`)
})

// messages returns the messages of the request.
func (c *call) messages() []message {
	all := make([]message, 0, 1+len(c.req.Messages))
	system := c.req.System
	if system != "" && c.role() != mergedRole {
		all = append(all, message{c.role(), system})
		system = ""
	}
	for _, m := range c.req.Messages {
		text := m.Text
		if system != "" {
			if m.Role != llm.User {
				all = append(all, message{string(llm.User), system})
			} else {
				text = system + "\n\n" + text
			}
			system = ""
		}
		all = append(all, message{string(m.Role), text})
	}
	return all
}

// writeSettings writes the settings of the request and the members of Config.ExtraBody.
// It adds a warning for each setting that the endpoint refused.
func (c *call) writeSettings(set func(key string, value any)) {
	if c.req.MaxTokens > 0 {
		set(c.tokensKey(), c.req.MaxTokens)
	}
	for i, s := range settings {
		switch value, given := s.value(&c.req); {
		case given && c.changes.leftOut[i]:
			c.warn(s.key + ": the endpoint does not take it for this model; requests are sent without it")
		case given:
			set(s.key, value)
		}
	}
	if len(c.req.Stop) > 0 {
		set("stop", c.req.Stop)
	}
	if c.req.System != "" && c.changes.role == mergedRole {
		c.warn("system prompt: the endpoint takes none for this model; it is sent at the start of the first message")
	}
	for name, value := range c.model.extra {
		set(name, value)
	}
}

// Version describes the configuration that the model's answers depend on in addition to
// its name, its endpoint and the request. It is empty for the default configuration.
func (m *Model) Version() string { return m.version }

// versionOf returns the version of a model.
func versionOf(role string, output string, extra map[string]json.RawMessage) string {
	var words []string
	if output != "" && output != autoOutput {
		words = append(words, fmt.Sprintf("structured output %s", output))
	}
	if role != systemRole {
		words = append(words, "system prompt as "+role)
	}
	if len(extra) > 0 {
		words = append(words, fmt.Sprintf("extra body %x", sha256.Sum256(join(extra))))
	}
	return strings.Join(words, ", ")
}
