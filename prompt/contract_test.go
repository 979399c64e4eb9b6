package prompt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/prompt"
)

// Requirement: G21.
func TestBuildRefusesAToolThatTheContractDoesNotDisclose(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.brief()
	b.Tools = []brief.Tool{{Name: "mail"}}
	_, _, err := prompt.Build(b)
	require.ErrorIs(t, err, brief.ErrInvalid)
	require.ErrorContains(t, err, `tool "mail": the contract does not disclose it`)
	b.Contract.Tools = []string{"mail"}
	_, r, err := prompt.Build(b)
	require.NoError(t, err)
	require.Equal(t, []string{"mail"}, r.Contract.Tools)
}
