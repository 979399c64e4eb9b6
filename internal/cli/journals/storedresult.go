package journals

import (
	"cmp"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
)

// A StoredResult is a result as the user of the run may read it now.
type StoredResult struct {
	Text       string
	Structured string // canonical JSON; empty without a schema
	Label      label.Classification
	Hidden     bool // the text says why there is none
}

// Result returns the result of a completed call as the user of the run may read it now: it is
// withheld above the user's clearance, and if it cannot be decrypted, has expired or was altered.
func (k *StoredRun) Result(x *record.AgentCall) StoredResult {
	if x.Missing != "" && x.Shown != nil {
		return StoredResult{Text: x.Shown.Text, Label: x.MissingLabel, Hidden: true}
	}
	if x.Result == nil {
		return withheldResult(label.Secret, label.Secret.String())
	}
	level := x.Result.Classification
	e, err := x.Result.Envelope()
	switch {
	case err != nil || e.Genuine() != nil:
		return withheldResult(level, "it is not what was stored")
	case !e.ExpiresAt().IsZero() && !k.Now.Before(e.ExpiresAt()):
		return withheldResult(level, "expired")
	case x.Shown != nil:
		return StoredResult{x.Shown.Text, x.Shown.Structured, level, trace.IsWithheld(x.Shown.Text)}
	}
	structured := string(x.Result.JSON)
	return StoredResult{cmp.Or(x.Result.Text, structured), structured, level, false}
}

// withheldResult returns a result that cannot be shown, with the reason in place of its text.
func withheldResult(level label.Classification, why string) StoredResult {
	return StoredResult{Text: "[withheld: " + why + "]", Label: level, Hidden: true}
}
