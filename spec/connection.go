package spec

import (
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"time"
)

// A Connection says how the model of an agent is reached. Each setting is the
// first that is there of: the flag, the agent's, agentDefaults', the spec's,
// the orchestrator's. The environment is not looked at, except where a value
// names it.
type Connection struct {
	Model       string // empty means that nothing names one
	BaseURL     string // empty means OPENAI_BASE_URL, else api.openai.com
	APIKey      Key
	Headers     map[string]string // may hold credentials; printing a Connection shows names only
	MaxTurns    int               // zero means the agent package's default
	MaxTokens   int               // zero leaves it to the endpoint
	Temperature *float64          // nil leaves it to the endpoint
	TopP        *float64          // nil leaves it to the endpoint
	Timeout     time.Duration     // bound on the work for one prompt; zero means none
	CallTimeout time.Duration     // bound on one model call; zero means the default

	written string // BaseURL before the environment came in
}

// String names the model, the endpoint and the headers, and shows no value of a header.
func (c Connection) String() string {
	return fmt.Sprintf("model %q at %q, key %q, headers %q", c.Model, safeURL(c.BaseURL), c.APIKey, slices.Sorted(maps.Keys(c.Headers)))
}

// safeURL returns a URL without what may be a credential: user, password, query.
func safeURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "[unreadable]"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// Format prints String, whatever the verb.
func (c Connection) Format(s fmt.State, _ rune) { fmt.Fprint(s, c.String()) }

// LogValue returns String.
func (c Connection) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalJSON encodes String.
func (c Connection) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", c.String()), nil }

// A Key is the text of an API key that no printer shows: only Reveal gives it
// out. The zero Key means none.
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

// GoString returns String.
func (k Key) GoString() string { return k.String() }

// Format prints String, whatever the verb.
func (k Key) Format(s fmt.State, _ rune) { fmt.Fprint(s, k.String()) }

// LogValue returns String.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText returns String, for JSON, YAML and the like.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
