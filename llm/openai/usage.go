package openai

import "math"

// usage reads the token counts. A count that is missing or cannot be read leaves
// what an earlier chunk counted, else zero: not counted. A negative count is an
// error, since it would lower what a budget counts.
func (d *completionReader) usage(c *completion) error {
	if d.tokens.PeekKind() != '{' {
		return nil // null in most chunks of a stream
	}
	u := &c.usage
	total := 0
	err := d.object(func(name []byte) error {
		switch string(name) {
		case "total_tokens":
			return d.partOfCount(&total)
		case "prompt_tokens":
			return d.count(&u.InputTokens)
		case "completion_tokens":
			return d.count(&u.OutputTokens)
		case "prompt_cache_hit_tokens": // DeepSeek, api-docs.deepseek.com/guides/kv_cache
			return d.partOfCount(&u.CachedTokens)
		case "cache_read_input_tokens", "cache_creation_input_tokens": // Anthropic, in the replies of gateways
			n := 0
			err := d.partOfCount(&n)
			c.cached += min(n, math.MaxInt32)
			return err
		case "prompt_tokens_details":
			return d.countIn("cached_tokens", &u.CachedTokens)
		case "completion_tokens_details":
			return d.countIn("reasoning_tokens", &u.ReasoningTokens)
		}
		return nil
	})
	if u.InputTokens > 0 {
		// xAI, Gemini and gateways to it leave reasoning out of completion_tokens
		// (docs.x.ai/docs/key-information/consumption-and-rate-limits).
		u.OutputTokens = max(u.OutputTokens, total-u.InputTokens-c.cached)
	}
	return err
}

// countIn reads a part of a count, such as cached_tokens, from a member of an object. Any
// other value is skipped.
func (d *completionReader) countIn(member string, count *int) error {
	if d.tokens.PeekKind() != '{' {
		return nil
	}
	return d.object(func(name []byte) error {
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
		*count = n
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
	*count = n
	return nil
}
