package jsonvalue_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/jsonvalue"
)

// shownOf gives a stream the pieces of a text, and returns what its viewer sees in the end and
// how often the answer began again.
func shownOf(pieces ...string) (shown string, again int) {
	var s jsonvalue.AnswerStream
	for _, piece := range pieces {
		text, restarted := s.Add(piece)
		if restarted {
			shown, again = "", again+1
		}
		shown += text
	}
	return shown, again
}

func TestAnswerStream(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		pieces []string
		shown  string
		again  int
	}{
		{name: "no reasoning", pieces: []string{" An", " answer", ".\n"}, shown: " An answer.\n"},
		{name: "a tag in pieces", pieces: []string{"\n<th", "ink>", "Let me", " see.</thi", "nk>\n", "\nAn ", "answer"}, shown: "An answer"},
		{name: "what only begins like a tag", pieces: []string{"<th", "e>"}, shown: "<the>"},
		{name: "two blocks", pieces: []string{"<think>a</think><thi", "nking>b</thinking>", "c"}, shown: "c"},
		{name: "still in a block", pieces: []string{"<think>a", " b"}},
		{name: "no opening tag", pieces: []string{"a\nb", "\n</think>", "\n\n", "c"}, shown: "c", again: 1},
		{name: "a closing tag in a sentence", pieces: []string{"Close it with </think>", " then."}, shown: "Close it with </think> then."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			shown, again := shownOf(tt.pieces...)
			require.Equal(t, []any{tt.shown, tt.again}, []any{shown, again})
		})
	}
}

// However a text is cut, its viewer sees the answer in the end, and never the reasoning of a block.
func TestAnswerStreamShowsTheAnswer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SampledFrom([]string{"<think>", "</think>", "<thinking>", "</thinking>", "[THINK]", "[/THINK]", "\n", " ", "word", "<", "\ufeff", "{}"})
		text := strings.Join(rapid.SliceOfN(parts, 0, 12).Draw(t, "text"), "") + "\nend"
		var pieces []string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		_, answer, whole := jsonvalue.CutReasoning(text)
		shown, _ := shownOf(pieces...)
		if whole && shown != answer || !whole && shown != "" {
			t.Fatalf("%q in pieces %q: %q is shown; the answer is %q", text, pieces, shown, answer)
		}
	})
}

// A text with more closing tags than a model writes is not shown, so that it is not read again
// and again.
func TestAnswerStreamEnds(t *testing.T) {
	t.Parallel()
	var pieces []string
	for range 100 {
		pieces = append(pieces, "a </think> b")
	}
	shown, _ := shownOf(pieces...)
	require.Less(t, len(shown), len(strings.Join(pieces, "")))
}
