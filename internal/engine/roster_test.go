package engine_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/task"
)

// A fault is one problem that a test expects.
type fault struct {
	pointer string
	part    string // of the text
	is      error
}

// requireFaults holds an error to be exactly these problems, in this order.
func requireFaults(t *testing.T, err error, want ...fault) {
	t.Helper()
	found, ok := errors.AsType[task.Problems](err)
	require.True(t, ok, "%v", err)
	var got, pointers []string
	for _, p := range found {
		got = append(got, p.Pointer)
	}
	for _, f := range want {
		pointers = append(pointers, f.pointer)
	}
	require.Equal(t, pointers, got, "%v", err)
	for i, f := range want {
		require.Contains(t, found[i].Error(), f.part)
		if f.is != nil {
			require.ErrorIs(t, found[i], f.is)
			require.ErrorIs(t, err, f.is)
		}
	}
}
