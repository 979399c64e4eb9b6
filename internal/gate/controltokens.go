package gate

import (
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/jsonvalue"
)

// breaker is put behind the first character of a chat-template token: a reader
// still sees the text, and a tokenizer no longer takes it for a boundary of turns.
const breaker = "·"

// tokens are the control tokens of common chat templates that are not of the
// form <|name|>: Llama 2 and Mistral, Gemma, and sentence marks.
var tokens = []string{
	"<start_of_turn>", "<end_of_turn>", "<<SYS>>", "<</SYS>>", "[INST]", "[/INST]",
	"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
	"[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "<s>", "</s>", "<bos>", "<eos>", "<unk>", "<pad>", "[gMASK]", "<sop>", "<eop>",
	"<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>", "[THINK]", "[/THINK]",
}

// longestName bounds the name inside <|name|>.
const longestName = 64

// breakPayloadTokens makes chat-template tokens harmless in both parts and counts them. It
// is not ok if the structured part has a key that another one becomes.
func breakPayloadTokens(p envelope.Payload) (_ envelope.Payload, n int, ok bool) {
	text, n := breakTokens(p.Text())
	if n > 0 {
		p = p.WithText(text)
	}
	canonical, structured := p.JSON()
	if !structured {
		return p, n, true
	}
	changed, m := breakTokens(canonical)
	if m == 0 {
		return p, n, true
	}
	// Tokens and the breaker need no escape, so the text stays JSON; reading it
	// again restores the order of its keys.
	v, err := jsonvalue.Parse(changed)
	return p.WithStructured(v), n + m, err == nil
}

// breakTokens returns the text with every token broken. Text without one is
// returned as it is, without an allocation.
func breakTokens(text string) (string, int) {
	if strings.IndexByte(text, '<') < 0 && strings.IndexByte(text, '[') < 0 { // much faster than IndexAny
		return text, 0
	}
	var b strings.Builder
	n, done := 0, 0
	for i := 0; i < len(text); {
		next := strings.IndexAny(text[i:], "<[")
		if next < 0 {
			break
		}
		i += next
		i++
		if tokenAt(text[i-1:]) { // one may be inside another: <|[INST]|>
			b.WriteString(text[done:i])
			b.WriteString(breaker)
			done = i
			n++
		}
	}
	if n == 0 {
		return text, 0
	}
	b.WriteString(text[done:])
	return b.String(), n
}

// tokenAt reports whether text begins with a token.
func tokenAt(text string) bool {
	if barred(text, "<|", "|>") || barred(text, "<｜", "｜>") { // DeepSeek writes full-width bars
		return true
	}
	for _, token := range tokens {
		if strings.HasPrefix(text, token) {
			return true
		}
	}
	return false
}

// barred reports whether text begins with a token of the form <|name|>.
func barred(text, open, end string) bool {
	rest, ok := strings.CutPrefix(text, open)
	if !ok {
		return false
	}
	for i, runes := 0, 0; i < len(rest) && runes <= longestName; runes++ {
		if strings.HasPrefix(rest[i:], end) {
			return i > 0
		}
		r, size := utf8.DecodeRuneInString(rest[i:])
		if r == '\n' || r == '<' || r == '>' {
			return false
		}
		i += size
	}
	return false
}
