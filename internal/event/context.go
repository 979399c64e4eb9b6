package event

// Context measures what of all the context of a run was sent. Sizes are in
// bytes of UTF-8.
type Context struct {
	Prompts  int `json:"prompts"`       // that were sent
	Sent     int `json:"bytesSent"`     // of both texts of all of them
	Shared   int `json:"bytesIfShared"` // the same if each prompt had held every input and every result that there was
	Redacted int `json:"redacted"`      // values that a placeholder took the place of
	Revealed int `json:"revealed"`      // personal values that crossed in clear by a rule
	Withheld int `json:"withheld"`      // parts of values, and whole ones, that were granted or asked for and stayed behind

	Truncated int `json:"truncated,omitempty"` // pieces of context that a size limit cut
}

// Add returns the sum of both.
func (c Context) Add(d Context) Context {
	return Context{
		Prompts: c.Prompts + d.Prompts, Sent: c.Sent + d.Sent, Shared: c.Shared + d.Shared,
		Redacted: c.Redacted + d.Redacted, Revealed: c.Revealed + d.Revealed, Withheld: c.Withheld + d.Withheld,
		Truncated: c.Truncated + d.Truncated,
	}
}
