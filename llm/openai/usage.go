package openai

import (
	"math"

	"github.com/runteam/runteam/llm"
)

// counts are token counts as endpoints write them. Zero means that a count is missing.
type counts struct {
	prompt, completion, total int
	cached, reasoning         int // of the prompt and of the completion
	cacheRead, cacheCreated   int // Anthropic's, which are no part of its prompt
}

// merge keeps the larger of each count: a later count may repeat an earlier one, and some proxies
// end a stream with zeros.
func (n *counts) merge(m *counts) {
	if *m == (counts{}) {
		return
	}
	*n = counts{
		prompt: max(n.prompt, m.prompt), completion: max(n.completion, m.completion), total: max(n.total, m.total),
		cached: max(n.cached, m.cached), reasoning: max(n.reasoning, m.reasoning),
		cacheRead: max(n.cacheRead, m.cacheRead), cacheCreated: max(n.cacheCreated, m.cacheCreated),
	}
}

// usage returns what the counts mean, each token counted once.
func (n *counts) usage() llm.Usage {
	u := llm.Usage{InputTokens: n.prompt + n.beside(), OutputTokens: n.completion, CachedTokens: max(n.cached, n.cacheRead), ReasoningTokens: n.reasoning}
	if n.prompt > 0 {
		// xAI, Gemini and gateways to it leave reasoning out of completion_tokens
		// (docs.x.ai/docs/key-information/consumption-and-rate-limits).
		u.OutputTokens = max(u.OutputTokens, n.total-u.InputTokens)
	}
	return u
}

// beside returns the tokens of the prompt that were read from or written to a cache and are not
// among those of the prompt. Anthropic counts them apart
// (docs.anthropic.com/en/docs/build-with-claude/prompt-caching), gateways to it in either way. They
// are part of the prompt's count if that has room for them, and the endpoint also counts them as
// part of it or its total has no others.
func (n *counts) beside() int {
	cache := n.cacheRead + n.cacheCreated
	if cache <= n.prompt && (n.cached > 0 && n.cached >= n.cacheRead || n.total > 0 && n.total < n.prompt+n.completion+cache) {
		return 0
	}
	return cache
}

// usage merges token counts into n: those of an object, or of each object of a list. A count that is missing or
// cannot be read counts nothing. A negative count is an error, since it would lower what a budget counts.
func (d *completionReader) usage(n *counts) error {
	if d.tokens.PeekKind() == '[' {
		return d.array(func() error { return d.usage(n) })
	}
	var m counts
	err := d.within(func(name []byte) error {
		switch string(name) {
		case "total_tokens":
			return d.partOfCount(&m.total)
		case "prompt_tokens", "input_tokens": // the second is of the Responses API and of Anthropic
			return d.count(&m.prompt)
		case "completion_tokens", "output_tokens":
			return d.count(&m.completion)
		case "prompt_cache_hit_tokens": // DeepSeek, api-docs.deepseek.com/guides/kv_cache
			return d.partOfCount(&m.cached)
		case "cache_read_input_tokens":
			return d.partOfCount(&m.cacheRead)
		case "cache_creation_input_tokens":
			return d.partOfCount(&m.cacheCreated)
		case "prompt_tokens_details":
			return d.countIn("cached_tokens", &m.cached)
		case "completion_tokens_details":
			return d.countIn("reasoning_tokens", &m.reasoning)
		}
		return nil
	})
	n.merge(&m)
	return err
}

// countIn reads a part of a count, such as cached_tokens, from a member of an object. Any
// other value is skipped.
func (d *completionReader) countIn(member string, count *int) error {
	return d.within(func(name []byte) error {
		if string(name) == member {
			return d.partOfCount(count)
		}
		return nil
	})
}

// partOfCount reads a part of a count. A negative number is skipped.
func (d *completionReader) partOfCount(count *int) error {
	n, known, err := d.integer()
	if known && n >= 0 {
		*count = max(*count, min(n, math.MaxInt32))
	}
	return err
}

// count reads a count. A negative number is an error.
func (d *completionReader) count(count *int) error {
	n, known, err := d.integer()
	switch {
	case err != nil || !known:
		return err
	case n < 0:
		return errUsage
	}
	*count = max(*count, n)
	return nil
}
