package openai

import "github.com/runteam/runteam/llm"

// maxCharsPerToken exceeds the average number of characters per token of any long text.
// English has 4 to 5.
const maxCharsPerToken = 8

// minCountedPrompt is the length in characters from which a prompt is compared with its
// token count. Shorter prompts fit into every context window.
const minCountedPrompt = 4096

// cutPrompt is the warning about an endpoint that counts too few tokens.
const cutPrompt = "prompt: the endpoint counted far fewer tokens than the prompt can have, " +
	"so it may have cut the prompt without an error; use a larger context window, for Ollama num_ctx or OLLAMA_CONTEXT_LENGTH"

// isCut reports whether an endpoint counted far fewer tokens than the texts of a
// request can have. Ollama cuts a prompt that exceeds its context window and answers
// from the rest (docs/faq.md of github.com/ollama/ollama).
func isCut(req *llm.Request, counted int) bool {
	bytes := len(req.System)
	for i := range req.Messages {
		bytes += len(req.Messages[i].Text)
	}
	if counted <= 0 || bytes < minCountedPrompt || counted >= bytes/maxCharsPerToken {
		return false // characters have at least one byte
	}
	chars := textLength(req.System)
	for i := range req.Messages {
		chars += textLength(req.Messages[i].Text)
	}
	return chars >= minCountedPrompt && counted < chars/maxCharsPerToken
}

// textLength counts the characters of a text. A run of one character or of whitespace
// counts as one, since it may be a single token. A Chinese, Japanese or Korean character
// counts as two, since a token has fewer of them.
func textLength(text string) (n int) {
	before := rune(-1)
	for _, r := range text {
		if r == '\n' || r == '\r' || r == '\t' {
			r = ' '
		}
		if r == before {
			continue
		}
		before = r
		if n++; r >= 0x2e80 && r <= 0x9fff || r >= 0xac00 && r <= 0xd7af || r >= 0x20000 && r < 0x40000 {
			n++
		}
	}
	return n
}
