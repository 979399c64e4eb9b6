package callfault_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/callfault"
)

func TestKindsDecideOnRetries(t *testing.T) {
	t.Parallel()
	tests := []struct {
		kind               string
		status             int
		answered, terminal bool
	}{
		{callfault.Unauthorized, 0, false, true},
		{callfault.Unauthorized, 401, true, true},
		{callfault.Unreachable, 0, false, false},
		{callfault.Timeout, 0, false, false},
		{callfault.NotFound, 404, false, true},
		{callfault.UnknownModel, 404, true, true},
		{callfault.ServerError, 500, true, false},
		{callfault.Cut, 200, true, false},
		{callfault.TooLarge, 200, true, true},
	}
	for _, tt := range tests {
		require.Equal(t, tt.answered, callfault.IsAnswered(tt.kind, tt.status), tt)
		require.Equal(t, tt.terminal, callfault.IsTerminal(tt.kind), tt)
		require.False(t, tt.terminal && callfault.IsRetryable(tt.kind), tt)
	}
}
