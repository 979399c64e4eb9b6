package specfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/connection"
	"github.com/runteam/runteam/llm"
)

// A Connection says how the model of an agent is reached. Each setting is the first that
// is set in: the options, the agent, agentDefaults, the spec, the orchestrator. The
// environment is only read where a value names a variable.
type Connection struct {
	Model       string // empty means that nothing names one
	BaseURL     string // empty means OPENAI_BASE_URL, else api.openai.com
	APIKey      Key
	Headers     map[string]string // may hold credentials; printing a Connection shows names only
	MaxTurns    int               // zero means the agent package's default
	Timeout     time.Duration     // bound on the work for one prompt; zero means none
	CallTimeout time.Duration     // bound on one model call; zero means the default

	llm.Settings // of each call

	MaxTokensKey     string          // name under which MaxTokens is sent; empty means the endpoint's usual one
	SystemRole       string          // system, developer or merge; empty means system
	ExtraBody        json.RawMessage // members that are added to each request: a JSON object, or nil
	StructuredOutput string          // form in which requests ask for JSON: auto, schema, object or prompt; empty means auto

	TextToolCalls bool // an answer that is one call of a tool, written as text, is that call
	ownTextCalls  bool // the agent or a default for agents sets that

	// Fallback are the connections to use in this order if this one fails. They have no
	// fallback of their own.
	Fallback []Connection

	written    string            // BaseURL before the environment came in
	shownURL   string            // BaseURL with ${NAME} for values of the environment; empty if there are none
	shownModel string            // Model likewise
	values     map[string]string // of the variables that are part of the connection
}

// conceal records the values that an expansion read from the environment.
func (c *Connection) conceal(x expansion) {
	for name, value := range x.values {
		if c.values == nil {
			c.values = make(map[string]string)
		}
		c.values[name] = value
	}
}

// minConcealed is the length of the shortest value that Conceal replaces.
const minConcealed = 4

// Conceal returns a text with ${NAME} in place of each value that a variable of the
// environment brought into c: into its base URL, key, headers or model. It is applied to
// all messages about a connection. The value of OPENAI_BASE_URL is not a secret and stays.
func (c Connection) Conceal(text string) string {
	if c.shownURL != "" && c.BaseURL != "" {
		base, _, _ := strings.Cut(c.BaseURL, "?") // messages name an endpoint without its query
		shown, _, _ := strings.Cut(c.shownURL, "?")
		text = strings.ReplaceAll(text, strings.TrimRight(base, "/"), strings.TrimRight(shown, "/"))
	}
	return concealValues(text, c.values)
}

// concealValues returns a text with ${NAME} in place of the values of variables, except for
// OPENAI_BASE_URL.
func concealValues(text string, values map[string]string) string {
	names := slices.SortedFunc(maps.Keys(values), func(a, b string) int { // a value may contain another one
		return cmp.Or(len(values[b])-len(values[a]), cmp.Compare(a, b))
	})
	for _, name := range names {
		if value := strings.TrimSpace(values[name]); len(value) >= minConcealed && name != openAIBase {
			text = strings.ReplaceAll(text, value, opening+name+"}")
			text = strings.ReplaceAll(text, url.PathEscape(value), opening+name+"}") // the form in a path
		}
	}
	return text
}

// URLAsWritten returns the base URL with ${NAME} in place of values of the
// environment, for messages and records. It is BaseURL if there are none.
func (c Connection) URLAsWritten() string { return cmp.Or(c.shownURL, c.BaseURL) }

// endpointNames returns the names of the endpoints: their base URLs with ${NAME} for
// values of the environment, or "" where there are none.
func (c *Connection) endpointNames() []string {
	names := []string{c.shownURL}
	for i := range c.Fallback {
		names = append(names, c.Fallback[i].shownURL)
	}
	return names
}

// ModelAsWritten returns the name of the model with ${NAME} in place of values of
// the environment, for messages and records. It is Model if there are none.
func (c Connection) ModelAsWritten() string { return cmp.Or(c.shownModel, c.Model) }

// String names the model, the endpoint and the headers, and shows no value of a header.
func (c Connection) String() string {
	base := c.shownURL
	if base == "" {
		base = connection.Redact(c.BaseURL)
	}
	return fmt.Sprintf("model %q at %q, key %q, headers %q", c.ModelAsWritten(), base, c.APIKey, slices.Sorted(maps.Keys(c.Headers)))
}

// Format prints String, whatever the verb.
func (c Connection) Format(s fmt.State, _ rune) { fmt.Fprint(s, c.String()) }

// MarshalText returns String, for JSON and structured logs.
func (c Connection) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// A Key is an API key that printing does not show; only Reveal returns its text. The zero
// Key means none.
type Key struct {
	text *string // behind a pointer, since fmt prints unexported fields without asking their methods
}

// NewKey returns a key; an empty text gives the zero Key.
func NewKey(text string) Key {
	if text == "" {
		return Key{}
	}
	return Key{text: &text}
}

// IsZero reports whether k is no key.
func (k Key) IsZero() bool { return k.text == nil }

// Reveal returns the text of the key, for the client that sends it.
func (k Key) Reveal() string {
	if k.text == nil {
		return ""
	}
	return *k.text
}

// String returns "[key]", or nothing for the zero Key.
func (k Key) String() string {
	if k.IsZero() {
		return ""
	}
	return "[key]"
}

// Format prints String, whatever the verb.
func (k Key) Format(s fmt.State, _ rune) { fmt.Fprint(s, k.String()) }

// MarshalText returns String, for JSON, YAML and structured logs.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
