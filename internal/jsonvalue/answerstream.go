package jsonvalue

import "strings"

// An AnswerStream is [CutReasoning] for a text that still arrives: it passes on the answer, and
// keeps the reasoning that the text begins with. The zero value is ready for use.
type AnswerStream struct {
	text      strings.Builder // all of it
	start     int             // where the answer begins
	passed    int             // where what was passed on ends
	begun     bool            // the answer has begun
	inBlock   bool            // the text ends in a block of reasoning
	undecided bool            // it ends with a tag that counts only if it is alone on its line
	cuts      int             // how often the whole text was read
}

// maxCuts bounds how often a stream reads the whole text again, which it does at each closing tag.
// A text with more of them is not passed on any further.
const maxCuts = 64

// longestTag is more bytes than a tag has.
const longestTag = 16

// Add takes the next piece of the text, and returns the next piece of the answer. If again is
// true, the answer begins again with that piece: what was passed on turned out to be reasoning.
func (s *AnswerStream) Add(piece string) (answer string, again bool) {
	_, _ = s.text.WriteString(piece)
	text := s.text.String()
	if !s.undecided && (s.begun || s.inBlock) && !hasClosingTag(text[max(0, len(text)-len(piece)-longestTag):]) {
		return s.pass(text), false
	}
	if s.cuts == maxCuts {
		s.begun, s.inBlock, s.undecided = false, true, false
		return "", false
	}
	if s.undecided = endsWithTag(text); s.undecided {
		return "", false
	}
	s.cuts++
	_, rest, whole := CutReasoning(text)
	before := s.start
	s.start, s.inBlock = len(text)-len(rest), !whole
	again = s.begun && (s.inBlock || s.start != before)
	if again || !s.begun {
		s.begun, s.passed = !s.inBlock && !mayBeTag(rest), s.start
	}
	return s.pass(text), again
}

// pass returns what follows of the answer.
func (s *AnswerStream) pass(text string) string {
	if !s.begun {
		return ""
	}
	next := text[s.passed:]
	s.passed = len(text)
	return next
}

// hasClosingTag reports whether a text has a tag that closes a block of reasoning.
func hasClosingTag(text string) bool {
	for _, tag := range reasoningTags {
		if strings.Contains(text, tag[1]) {
			return true
		}
	}
	return false
}

// endsWithTag reports whether the last line of a text ends with a closing tag and spaces.
func endsWithTag(text string) bool {
	text = strings.TrimRight(text[strings.LastIndexByte(text, '\n')+1:], space)
	for _, tag := range reasoningTags {
		if strings.HasSuffix(text, tag[1]) {
			return true
		}
	}
	return false
}

// mayBeTag reports whether a text is the beginning of a tag that opens a block, or blank.
func mayBeTag(text string) bool {
	text = strings.TrimLeft(text, space)
	for _, tag := range reasoningTags {
		if strings.HasPrefix(tag[0], text) {
			return true
		}
	}
	return strings.HasPrefix("\ufeff", text) // a piece may end within a character
}
