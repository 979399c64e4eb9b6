package connection

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/runteam/runteam/internal/oneline"
)

// MaxExtraBody bounds the members that are added to each request, in bytes of JSON.
const MaxExtraBody = 64 << 10

// ExtraName is the pattern of the names of added members.
const ExtraName = "^[A-Za-z0-9_.-]{1,64}$"

// IsExtraName reports whether a name matches [ExtraName].
func IsExtraName(name string) bool { return extraName().MatchString(name) }

var extraName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(ExtraName) })

// reserved maps each member that cannot be added to what a spec file sets instead. The
// client writes these members itself, or they would change the model, the messages or the
// form of the reply.
var reserved = map[string]string{
	"model": "write model", "models": "write model, with one name",
	"messages": "write systemPrompt, and tasks with what they use", "prompt": "write systemPrompt, and tasks with what they use",
	"max_tokens": "write maxTokens", "max_completion_tokens": "write maxTokens, and maxTokensKey: max_completion_tokens",
	"temperature": "write temperature", "top_p": "write topP", "frequency_penalty": "write frequencyPenalty", "presence_penalty": "write presencePenalty",
	"seed": "write seed", "stop": "write stop", "reasoning_effort": "write reasoningEffort", "response_format": "write outputSchema",
	"stream": "remove it", "stream_options": "remove it",
	"tools": "remove it; tools of the agent are sent", "tool_choice": "remove it; tools of the agent are sent", "parallel_tool_calls": "remove it; tools of the agent are sent",
	"functions": "remove it; tools of the agent are sent", "function_call": "remove it; tools of the agent are sent",
}

// Reserved returns the names of the members that cannot be added, sorted.
func Reserved() []string { return slices.Sorted(maps.Keys(reserved)) }

// IsReserved reports whether a member cannot be added, and what a spec file sets instead.
// It ignores letter case, as some servers do.
func IsReserved(name string) (hint string, ok bool) {
	for member, hint := range reserved {
		if strings.EqualFold(member, name) {
			return hint, true
		}
	}
	return "", false
}

// ParseExtraBody returns the members of a JSON object that is added to each request.
func ParseExtraBody(raw json.RawMessage) (map[string]json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil, nil
	}
	if len(raw) > MaxExtraBody {
		return nil, fmt.Errorf("ExtraBody: it has %d bytes; write at most %d KiB", len(raw), MaxExtraBody>>10)
	}
	members := make(map[string]json.RawMessage)
	if !jsontext.Value(raw).IsValid() || raw[0] != '{' || json.Unmarshal(raw, &members) != nil {
		return nil, errors.New("ExtraBody: write a JSON object without duplicate names")
	}
	for name := range members {
		if !IsExtraName(name) {
			return nil, fmt.Errorf("ExtraBody: invalid name %q; write at most 64 letters, digits, '_', '-' and '.'", oneline.Of(name))
		}
		if _, ok := IsReserved(name); ok {
			return nil, fmt.Errorf("ExtraBody: %q cannot be set here; use the field of Config or of llm.Request", name)
		}
	}
	return members, nil
}
