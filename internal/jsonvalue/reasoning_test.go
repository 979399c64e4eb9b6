package jsonvalue_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/jsonvalue"
)

func TestCutReasoning(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, give, reasoning, answer string
		open                          bool
	}{
		{name: "none", give: " An answer.\n", answer: " An answer.\n"},
		{name: "a block", give: "<think>\nLet me see.\n</think>\n\nAn answer.\n", reasoning: "Let me see.", answer: "An answer.\n"},
		{name: "behind spaces", give: "\ufeff \n<think>a</think>b", reasoning: "a", answer: "b"},
		{name: "an empty block", give: "<think>\n\n</think>\n\nb", answer: "b"},
		{name: "two blocks", give: "<think>a</think>\n<thinking>b</thinking>c", reasoning: "a\n\nb", answer: "c"},
		{name: "thinking", give: "<thinking>a</thinking>b", reasoning: "a", answer: "b"},
		{name: "thought", give: "<thought>a</thought>b", reasoning: "a", answer: "b"},
		{name: "reasoning", give: "<reasoning>a</reasoning><answer>b</answer>", reasoning: "a", answer: "<answer>b</answer>"},
		{name: "Seed-OSS", give: "<seed:think>a</seed:think>b", reasoning: "a", answer: "b"},
		{name: "Magistral", give: "[THINK]a[/THINK]b", reasoning: "a", answer: "b"},
		{name: "not closed", give: "<think>a\n\nThe answer is 7.", reasoning: "a\n\nThe answer is 7.", open: true},
		{name: "closed by another tag", give: "<think>a</thinking>b", reasoning: "a</thinking>b", open: true},
		{name: "a second block is not closed", give: "<think>a</think><think>b", reasoning: "a\n\nb", open: true},
		{name: "nothing behind it", give: "<think>a</think>\n", reasoning: "a"},
		{name: "no opening tag", give: "a\nb\n</think>\n\nc", reasoning: "a\nb", answer: "c"},
		{name: "no opening tag, at the very end", give: "a\n</think>", reasoning: "a"},
		{name: "a closing tag in a sentence", give: "Close it with </think> then.", answer: "Close it with </think> then."},
		{name: "tags further behind", give: "Write\n<think>\nx\n</think>\nso.", answer: "Write\n<think>\nx\n</think>\nso."},
		{name: "a tag in the answer", give: "<think>a</think>b <think>c</think>", reasoning: "a", answer: "b <think>c</think>"},
		{name: "another word", give: "<thinker>a</thinker>", answer: "<thinker>a</thinker>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			reasoning, answer, whole := jsonvalue.CutReasoning(tt.give)
			require.Equal(t, []any{tt.reasoning, tt.answer, !tt.open}, []any{reasoning, answer, whole})
		})
	}
}

// An answer never begins with a block of reasoning.
func TestCutReasoningLeavesNone(t *testing.T) {
	t.Parallel()
	pieces := rapid.SampledFrom([]string{"<think>", "</think>", "<thinking>", "</thinking>", "[THINK]", "[/THINK]", "\n", " ", "word", "{}"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(pieces, 0, 12).Draw(t, "pieces"), "")
		_, answer, whole := jsonvalue.CutReasoning(text)
		for _, tag := range []string{"<think>", "<thinking>", "[THINK]"} {
			if strings.HasPrefix(strings.TrimSpace(answer), tag) {
				t.Fatalf("%q leaves %q", text, answer)
			}
		}
		if !whole && answer != "" {
			t.Fatalf("%q is not closed and leaves %q", text, answer)
		}
	})
}

// Texts of nothing but tags take time in proportion to their length.
func TestCutReasoningIsLinear(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"<think></think>", "x\n</seed:think>\n", "\n</think>\n", "[THINK]", "<think> </thinking>"} {
		_, _, _ = jsonvalue.CutReasoning(strings.Repeat(piece, 4<<20/len(piece)))
	}
}
