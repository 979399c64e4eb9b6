package openai

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// A Key is a secret that no printer shows: only a request to its endpoint
// holds its text. The zero Key means none.
type Key struct {
	text *string // behind a pointer, since fmt prints unexported fields without asking their methods
}

// NewKey returns a key with the given text, without blanks around it. An
// empty text gives the zero Key.
func NewKey(text string) Key {
	text = strings.TrimSpace(text)
	if text == "" {
		return Key{}
	}
	return Key{text: &text}
}

// IsZero reports whether k is no key.
func (k Key) IsZero() bool { return k.text == nil }

// Equal reports whether both keys have the same text.
func (k Key) Equal(other Key) bool { return k.secret() == other.secret() }

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

// MarshalJSON encodes String.
func (k Key) MarshalJSON() ([]byte, error) { return []byte(`"` + k.String() + `"`), nil }

// secret returns the text of the key.
func (k Key) secret() string {
	if k.text == nil {
		return ""
	}
	return *k.text
}

// check refuses a key that no header can carry.
func (k Key) check() error {
	for _, r := range k.secret() {
		if r <= ' ' || r > '~' {
			return errors.New("the API key holds a blank, a line break or a character that no key has: set it anew")
		}
	}
	return nil
}
