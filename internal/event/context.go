package event

// Context measures how much of the context of a run was sent. Sizes are in bytes of UTF-8.
type Context struct {
	Prompts  int `json:"prompts"`       // that were sent
	Sent     int `json:"bytesSent"`     // by all prompts
	Shared   int `json:"bytesIfShared"` // what they would have sent if each had all inputs and all results so far
	Redacted int `json:"redacted"`      // values that a placeholder replaced
	Revealed int `json:"revealed"`      // personal values that were delivered in clear by a rule
	Withheld int `json:"withheld"`      // values and parts of values that were granted or requested, and withheld

	Truncated int `json:"truncated,omitempty"` // pieces of context that a size limit cut

	// TokensSaved is by how many tokens the gate made context smaller, summed over its decisions about
	// prompts, with a fourth of the bytes as tokens. What the caller may not see does not count; what was
	// withheld from its reader counts with its [bytesize.Class].
	TokensSaved int `json:"tokensSaved,omitempty"`
}

// Add returns the sum of both.
func (c Context) Add(d Context) Context {
	return Context{
		Prompts: c.Prompts + d.Prompts, Sent: c.Sent + d.Sent, Shared: c.Shared + d.Shared,
		Redacted: c.Redacted + d.Redacted, Revealed: c.Revealed + d.Revealed, Withheld: c.Withheld + d.Withheld,
		Truncated: c.Truncated + d.Truncated, TokensSaved: c.TokensSaved + d.TokensSaved,
	}
}
