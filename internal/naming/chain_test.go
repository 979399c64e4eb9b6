package naming_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/naming"
)

func TestChainHasItsNames(t *testing.T) {
	t.Parallel()
	one := naming.Chain("triage", naming.Chain("billing", "triage"))
	require.Equal(t, "triage > billing > triage", one)
	require.Equal(t, []string{"triage", "billing", "triage"}, naming.Links(one))
	require.Equal(t, []string{"triage", "billing"}, naming.Distinct(one))
	require.Equal(t, "triage", naming.First(one))
	require.Equal(t, "TRIAGE > BILLING > TRIAGE", naming.MapChain(one, strings.ToUpper))
	require.True(t, naming.IsChain(one))
	require.False(t, naming.IsChain("triage"))
	require.Equal(t, []string{"triage"}, naming.Links("triage"))
	require.Error(t, naming.CheckName(one), "no agent can have the name of a chain")
}
