package handoff

import (
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/envelope"
)

// breaker is put behind the first character of a chat-template token: a reader
// sees what stood there, and a tokenizer no longer takes it for a boundary of turns.
const breaker = "·"

// tokens are the control tokens of common chat templates that are not of the
// form <|name|>: Llama 2 and Mistral, Gemma, and sentence marks.
var tokens = []string{
	"<start_of_turn>", "<end_of_turn>", "<<SYS>>", "<</SYS>>", "[INST]", "[/INST]",
	"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
	"[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "<s>", "</s>", "<bos>", "<eos>",
}

// longestName bounds the name inside <|name|>.
const longestName = 64

// broken makes chat-template tokens harmless in both parts and counts them.
func broken(p envelope.Payload) (envelope.Payload, int) {
	text, n := breakTokens(p.Text())
	if n > 0 {
		p = p.WithText(text)
	}
	canonical, ok := p.JSON()
	if !ok {
		return p, n
	}
	changed, m := breakTokens(canonical)
	if m == 0 {
		return p, n
	}
	// Tokens and the breaker need no escape, so the text stays JSON; reading it
	// again restores the order of its keys.
	if v, err := envelope.ParseJSON(changed); err == nil {
		return p.WithStructured(v), n + m
	}
	return p.WithText(p.Text()), n
}

// breakTokens returns the text with every token broken. Text without one is
// returned as it is, without an allocation.
func breakTokens(text string) (string, int) {
	var b strings.Builder
	n, done := 0, 0
	for i := 0; i < len(text); {
		next := strings.IndexAny(text[i:], "<[")
		if next < 0 {
			break
		}
		i += next
		length := tokenAt(text[i:])
		if length == 0 {
			i++
			continue
		}
		b.WriteString(text[done : i+1])
		b.WriteString(breaker)
		done = i + 1
		n++
		i += length
	}
	if n == 0 {
		return text, 0
	}
	b.WriteString(text[done:])
	return b.String(), n
}

// tokenAt returns the length of the token that text begins with, or 0.
func tokenAt(text string) int {
	if length := barred(text, "<|", "|>"); length > 0 {
		return length
	}
	if length := barred(text, "<｜", "｜>"); length > 0 { // DeepSeek writes full-width bars
		return length
	}
	for _, token := range tokens {
		if strings.HasPrefix(text, token) {
			return len(token)
		}
	}
	return 0
}

// barred returns the length of a token of the form <|name|> at the start of text.
func barred(text, open, end string) int {
	rest, ok := strings.CutPrefix(text, open)
	if !ok {
		return 0
	}
	for i, runes := 0, 0; i < len(rest) && runes <= longestName; runes++ {
		if strings.HasPrefix(rest[i:], end) {
			if i == 0 {
				return 0
			}
			return len(open) + i + len(end)
		}
		r, size := utf8.DecodeRuneInString(rest[i:])
		if r == '\n' || r == '<' || r == '>' {
			return 0
		}
		i += size
	}
	return 0
}
