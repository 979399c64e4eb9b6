package gate

import (
	"context"
	"regexp"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/redact"
)

// A TextStream redacts a text for the caller while it arrives. What it releases is the beginning
// of what the gate delivers of the whole text.
type TextStream struct {
	redacted  *redact.Stream
	beginning []byte // of the text, as long as it may be that of a value
	shape     string // the beginning with one space for several
	held      bool   // the text is a value, which is redacted by its structure once it is whole
	begun     bool   // the text is none
}

// NewTextStream returns a stream to the caller, whom a policy redacts no more for than for any
// other reader.
func NewTextStream() *TextStream {
	return &TextStream{redacted: standardRedactor(handoff.User).Stream(nil)}
}

// mayBeFence is how a text begins that may be a value in a code fence; see [fence].
var mayBeFence = regexp.MustCompile("^\\s*(?:`{0,2}|```[A-Za-z0-9_+-]{0,10}\\s*)$")

// spaces are what [mayBeFence] does not count. A model may write any number of them, one at a time.
var spaces = regexp.MustCompile(`\s+`)

// Write takes the next piece of the text, and returns what can be shown by now.
func (s *TextStream) Write(ctx context.Context, piece string) (released string) {
	if s.held {
		return ""
	}
	if !s.begun {
		s.beginning, s.shape = append(s.beginning, piece...), spaces.ReplaceAllString(s.shape+piece, " ")
		if mayBeFence.MatchString(s.shape) {
			return ""
		}
		whole := string(s.beginning)
		s.beginning, s.shape = nil, ""
		if s.held = beginsValue(whole); s.held {
			return ""
		}
		piece, s.begun = whole, true
	}
	return s.redacted.Write(ctx, piece)
}

// beginsValue reports whether a text begins as an object or an array does, in a code fence or not.
func beginsValue(text string) bool {
	for i := range len(text) {
		if text[i] == '{' || text[i] == '[' {
			return fence.MatchString(text[:i])
		}
	}
	return false
}
