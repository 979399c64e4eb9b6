package gate_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What the gate does to delivered text: redact, break, cut.

// Requirement: G35.
func TestRedactedBeforeCut(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"token": fakeToken, "pem": fakePEM} {
		for _, before := range []int{1, 5, len(key) / 2, len(key) - 1, len(key), len(key) + 1} {
			s := text(t, strings.Repeat("x ", (gate.DefaultContextBytes-before)/2)+" "+key+" "+strings.Repeat("y ", 5000))
			out := s.Payload().Text()
			require.LessOrEqual(t, len(out), gate.DefaultContextBytes)
			require.Equal(t, 1, s.Decision().Redacted.Total(), "%s, %d bytes before the cut", name, before)
			for i := 0; i+8 <= len(key); i++ {
				require.NotContains(t, out, key[i:i+8], "%s, %d bytes before the cut", name, before)
			}
			tail := out[strings.LastIndex(out, "x"):]
			if at := strings.Index(tail, "["); at >= 0 {
				require.Contains(t, tail[at:], "]", "a placeholder is whole or not there")
			}
		}
	}
}

// Requirement: G35.
func TestCutsAroundPlaceholders(t *testing.T) {
	t.Parallel()
	const mark = "[REDACTED:token]"
	for before := range len(mark) + 2 {
		out := text(t, strings.Repeat("x", gate.DefaultContextBytes-before-1)+" "+fakeToken+" tail").Payload().Text()
		at := gate.DefaultContextBytes - before
		switch {
		case before >= len(mark):
			require.Equal(t, mark, out[at:at+len(mark)], "it fits")
		default:
			require.Len(t, out, at, "it goes as a whole")
		}
	}
}

// Requirement: G35.
func TestUnclosedBracketDoesNotDecideWhereToCut(t *testing.T) {
	t.Parallel()
	s := text(t, "[REDACTED:"+strings.Repeat("x", 2*gate.DefaultContextBytes))
	require.Len(t, s.Payload().Text(), gate.DefaultContextBytes)
}

// Requirement: G35.
func TestCutsOnRuneBoundaries(t *testing.T) {
	t.Parallel()
	for _, r := range []string{"é", "€", "\U0001f600"} {
		for shift := range len(r) {
			out := text(t, strings.Repeat("x", shift)+strings.Repeat(r, gate.DefaultContextBytes/2)).Payload().Text()
			require.True(t, utf8.ValidString(out))
			require.Greater(t, len(out), gate.DefaultContextBytes-len(r))
			require.LessOrEqual(t, len(out), gate.DefaultContextBytes)
		}
	}
}

func TestLower(t *testing.T) {
	t.Parallel()
	c, o := newCompartment(t), offer(t, structured(t, `{"a":1}`).WithText(strings.Repeat("é", 50)))
	o.As = task.Both
	s := seal(t, c, o)
	for _, limit := range []int{-5, 0, 1, 2, 3, 99, 100, 101} {
		low := s.Lower(limit)
		require.LessOrEqual(t, len(low.Payload().Text()), max(limit, 0))
		require.True(t, utf8.ValidString(low.Payload().Text()))
		canonical, _ := low.Payload().JSON()
		require.Equal(t, `{"a":1}`, canonical, "structured values are never cut")
		require.Equal(t, max(len(low.Payload().Text()), len(canonical)), low.Decision().BytesAfter, "a result and its structured part say the same")
		require.NoError(t, low.For(&c.Contract))
		if limit < 100 {
			require.Equal(t, 100, low.Decision().CutFrom)
			again := low.Lower(1)
			require.Equal(t, 100, again.Decision().CutFrom, "the first cut counts")
		} else {
			require.Equal(t, s, low)
		}
	}
	require.Equal(t, 100, len(s.Payload().Text()), "s itself stays as it is")
	require.Zero(t, s.Decision().CutFrom)
}

var controlTokens = []string{
	"<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|begin_of_text|>", "<|start_header_id|>", "<|eot_id|>", "<|START_OF_TURN_TOKEN|>", "<|user|>", "<|python_tag|>",
	"<｜begin▁of▁sentence｜>", "<｜User｜>", "<start_of_turn>", "<end_of_turn>", "<bos>", "<eos>", "<s>", "</s>",
	"<|" + strings.Repeat("x", 64) + "|>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]",
}

// Requirement: G30.
func TestControlTokensAreBroken(t *testing.T) {
	t.Parallel()
	for _, token := range controlTokens {
		s := text(t, "a "+token+token+" b")
		out := s.Payload().Text()
		require.NotContains(t, out, token)
		require.Equal(t, 2, s.Decision().Broken, token)
		require.Equal(t, "a "+token+token+" b", strings.ReplaceAll(out, "·", ""), "visibly, and nothing is lost")

		o := offer(t, structured(t, `{"k":["`+token+`"],"`+token+`":1}`))
		o.As = task.Structured
		s = sealed(t, newCompartment(t), o)
		canonical, _ := s.Payload().JSON()
		require.NotContains(t, canonical, token)
		require.Equal(t, 2, s.Decision().Broken, token)
		again := parse(t, canonical)
		require.Equal(t, canonical, again.Canonical(), "still canonical JSON")
	}
}

// Requirement: G30.
func TestTokensInsideTokens(t *testing.T) {
	t.Parallel()
	for _, give := range []string{"<|[INST]|>", "<|im_start|[/INST]|>", "<<<SYS>>", "[[INST]INST]", "<|<|im_start|>|>", "<|a<s>b|>", "<｜[INST]｜>", "<|" + strings.Repeat("x", 63) + "[INST]|>"} {
		out := text(t, give).Payload().Text()
		for _, token := range controlTokens {
			require.NotContains(t, out, token, give)
		}
		require.Equal(t, out, text(t, out).Payload().Text(), "%s: breaking again changes nothing", give)
	}
}

// Requirement: G30.
func TestOtherTextIsNotBroken(t *testing.T) {
	t.Parallel()
	for _, give := range []string{"a < b | c > d", "<||>", "<|two\nlines|>", "<|" + strings.Repeat("x", 65) + "|>", "list[INSTANCE]", "<|a<b|>", "<|a>b|>", "[inst]", "<start>", "x <| y", "|>", "<|", "<html>", "[1]", "a·b"} {
		s := text(t, give)
		require.Equal(t, give, s.Payload().Text())
		require.Zero(t, s.Decision().Broken)
	}
}

// Requirement: G30.
func TestBreakingIsIdempotent(t *testing.T) {
	t.Parallel()
	pieces := rapid.SampledFrom(append([]string{"<", "|", ">", "[", "]", "im_start", "INST", "/", "·", "｜", "\n", "<|", "|>", "s", "SYS"}, controlTokens...))
	rapid.Check(t, func(t *rapid.T) {
		give := strings.Join(rapid.SliceOfN(pieces, 0, 12).Draw(t, "pieces"), "")
		once := text(t, give)
		out := once.Payload().Text()
		for _, token := range controlTokens {
			require.NotContains(t, out, token)
		}
		twice := text(t, out)
		require.Equal(t, out, twice.Payload().Text())
		require.Zero(t, twice.Decision().Broken)
		require.Len(t, out, len(give)+once.Decision().Broken*len("·"))
	})
}

// Requirement: G30.
func TestKeysThatBecomeEqualAreWithheld(t *testing.T) {
	t.Parallel()
	o := offer(t, structured(t, `{"<s>":1,"<·s>":2,"x":"<|im_start|>"}`))
	for _, o.As = range []task.Payload{task.Output, task.Structured, task.Both} {
		requireWithheld(t, newCompartment(t), o, gate.RuleTokens, gate.ReasonRule, gate.CodeUnserializable)
	}
}

func TestBrokenTokensStayReadable(t *testing.T) {
	t.Parallel()
	c := newCompartment(t, func(k *gate.Contract) { k.Callee = handoff.User })
	s := seal(t, c, offer(t, envelope.Text("<|im_start|> "+fakeToken)))
	require.Equal(t, "<|im_start|> [REDACTED:token]", s.Payload().Text(), "secrets go nowhere")
}

func TestRedactionCounts(t *testing.T) {
	t.Parallel()
	o := offer(t, structured(t, `{"k":"`+fakeToken+`"}`).WithText(fakeToken+" and "+fakeToken))
	o.As = task.Both
	s := seal(t, newCompartment(t), o)
	canonical, _ := s.Payload().JSON()
	require.Equal(t, `{"k":"[REDACTED:token]"}`, canonical)
	require.Equal(t, "[REDACTED:token] and [REDACTED:token]", s.Payload().Text())
	require.Equal(t, 3, s.Decision().Redacted.Total())

	o.As = task.Output
	require.Equal(t, 2, sealed(t, newCompartment(t), o).Decision().Redacted.Total(), "what stays behind is not counted")
}
