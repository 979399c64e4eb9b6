package openai

import (
	"fmt"
	"io"
	"strings"
)

// A Key is a secret that no printer shows: only a request to its endpoint
// holds its text. The zero Key means none.
type Key struct {
	text *string // behind a pointer, since fmt prints unexported fields without asking their methods
}

// NewKey returns a key with the given text, without whitespace around it. An
// empty text gives the zero Key.
func NewKey(text string) Key {
	text = strings.TrimSpace(text)
	if text == "" {
		return Key{}
	}
	return Key{text: &text}
}

// Format prints "[key]" whatever the verb, and nothing for the zero Key.
func (k Key) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, k.mask()) }

// MarshalText returns "[key]", for JSON, YAML and structured logs.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.mask()), nil }

func (k Key) mask() string {
	if k.text == nil {
		return ""
	}
	return "[key]"
}

// secret returns the text of the key.
func (k Key) secret() string {
	if k.text == nil {
		return ""
	}
	return *k.text
}
