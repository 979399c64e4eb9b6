package openai

import (
	"fmt"
	"io"
	"strings"
)

// A Key is a secret that is never printed, logged or encoded. The zero Key means none.
type Key struct {
	text *string // a pointer, because fmt prints unexported fields without calling their methods
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
