package openai

import (
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
	names *regexp.Regexp           // matches the names of the setting in errors, in lower case
	unset func(*llm.Settings) bool // leaves the setting out and reports whether it was set
}

// settings are left out once an endpoint refused them. top_p precedes temperature because
// some endpoints accept only one of the two.
var settings = [...]setting{
	{"top_p", regexp.MustCompile(`\btop_?p\b`), func(s *llm.Settings) bool { return unset(&s.TopP) }},
	{"temperature", regexp.MustCompile(`\btemperature\b`), func(s *llm.Settings) bool { return unset(&s.Temperature) }},
	{"seed", regexp.MustCompile(`\bseed\b`), func(s *llm.Settings) bool { return unset(&s.Seed) }},
	{"frequency_penalty", regexp.MustCompile(`\b(frequency_?)?penalty\b`), func(s *llm.Settings) bool { return unset(&s.FrequencyPenalty) }},
	{"presence_penalty", regexp.MustCompile(`\b(presence_?)?penalty\b`), func(s *llm.Settings) bool { return unset(&s.PresencePenalty) }},
	{"reasoning_effort", regexp.MustCompile(`\breasoning[_.]?effort\b|does not support thinking`), func(s *llm.Settings) bool { return unset(&s.ReasoningEffort) }},
}

// unset sets *v to the zero value and reports whether it had another one.
func unset[T comparable](v *T) bool {
	var zero T
	was := *v != zero
	*v = zero
	return was
}

// settingAdaptations returns the adaptations that leave out one of the settings each.
func settingAdaptations() []adaptation {
	var all []adaptation
	for i, s := range settings {
		all = append(all, adaptation{
			applies: func(f *refusal, r *request) bool {
				given := r.Settings
				return s.unset(&given) && !r.changes.leftOut[i] && f.rejects(s.names)
			},
			change: func(_ *refusal, _ *request, next *changes) { next.leftOut[i] = true },
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
func (f *refusal) rejects(names *regexp.Regexp) bool {
	if strings.Contains(f.text, "supported values are") {
		return false
	}
	if param := lower(f.param); param != "" && !names.MatchString(param) &&
		slices.ContainsFunc(settings[:], func(s setting) bool { return s.names.MatchString(param) }) {
		return false
	}
	return names.MatchString(f.text) && unsupported().MatchString(f.text)
}

// refusesTokensKey reports whether the endpoint knows the limit on the reply only under
// its other name.
func (f *refusal) refusesTokensKey(r *request) bool {
	return r.MaxTokens > 0 && !r.changes.otherTokens && f.rejects(tokensKeys[r.model.maxTokens])
}

// tokensKeys matches the names of the limit on a reply in errors.
var tokensKeys = map[string]*regexp.Regexp{
	maxTokens:           regexp.MustCompile(`\bmax_?tokens\b`),
	maxCompletionTokens: regexp.MustCompile(`\bmax_?completion_?tokens\b`),
}

// refusesDeveloper reports whether the endpoint does not know the role "developer".
func (f *refusal) refusesDeveloper(r *request) bool {
	return r.System != "" && r.role() == developerRole && strings.Contains(f.text, developerRole)
}

// refusesSystem reports whether the model, or the chat template of the server, has no
// system prompt.
func (f *refusal) refusesSystem(r *request) bool {
	return r.System != "" && r.role() == systemRole && noSystem().MatchString(f.text)
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
		words = append(words, fmt.Sprintf("extra body %x", sha256.Sum256(joinMembers(extra))))
	}
	return strings.Join(words, ", ")
}
