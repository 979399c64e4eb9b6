package policytext_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/policytext"
)

// The text of a policy has the note of a rule, and whether models may translate.
func TestTextHasNotesAndTheSwitchOfTranslation(t *testing.T) {
	t.Parallel()
	p := &handoff.Policy{Rules: []handoff.PairRule{{ID: "r", From: "a", To: "b", Mode: handoff.Full, Note: "safe to share"}}, NoTranslationByModel: true}
	text, err := policytext.Write(p)
	require.NoError(t, err)
	require.JSONEq(t, `{"rules":[{"name":"r","from":"a","to":"b","mode":"full","note":"safe to share"}],"translateByModel":false}`, string(text))
	read, err := policytext.Read(text)
	require.NoError(t, err)
	require.Equal(t, p, read)
}
