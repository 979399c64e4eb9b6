package scripted_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/llm"
)

// How a call ended that had no answer is recorded, and a client learns it from a run of the recording.
func TestRecordedEnds(t *testing.T) {
	t.Parallel()
	const task, child = "# Task: a", "# Task: Goal\n\n## Goal\n\nFind pears"
	tests := []struct {
		user string
		give *callfault.EndedError
		want string // empty for a call that is left out
	}{
		{task, &callfault.EndedError{By: callfault.TimeLimit, Depth: callfault.OwnLimit}, "timeout"},
		{child, &callfault.EndedError{By: callfault.TimeLimit}, "task timeout"},
		{child, &callfault.EndedError{By: callfault.TimeLimit, Depth: 1}, "child timeout"},
		{child, &callfault.EndedError{By: callfault.TimeLimit, Depth: 12}, "child 12 timeout"},
		{task, &callfault.EndedError{By: callfault.Canceled}, "canceled"},
		{child, &callfault.EndedError{By: callfault.Interrupted}, "interrupted"},
		{task, &callfault.EndedError{By: callfault.Interrupted}, ""},
		{task, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.user+tt.want, func(t *testing.T) {
			t.Parallel()
			why := errors.New("why")
			r := scripted.Recorder{Ended: func(cause error) *callfault.EndedError {
				require.Equal(t, why, cause)
				return tt.give
			}}
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(why)
			waits := llm.ModelFunc(func(ctx context.Context, _ llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
				return llm.Response{}, ctx.Err()
			})
			_, err := r.Model(waits).Call(ctx, request(tt.user), nil)
			require.ErrorIs(t, err, context.Canceled)
			replies := r.Script().Replies
			if tt.want == "" {
				require.Empty(t, replies)
				return
			}
			require.Equal(t, tt.want, replies[0].Ended)
			_, m := start(t, reread(t, written(t, r.Script())))
			_, _, err = call(t, m, tt.user, false)
			e, ok := errors.AsType[*llm.Error](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, tt.give, scripted.EndOf(e))
			again := scripted.Recorder{}
			_, err = again.Model(asked{err: tt.give}.model()).Call(t.Context(), request(tt.user), nil)
			require.Equal(t, tt.give, err)
			require.Equal(t, replies, again.Script().Replies, "a recording of a replay is the recording")
		})
	}
}

// A recording in which every call was canceled holds nothing to replay.
func TestRecordingOfCancelsIsEmpty(t *testing.T) {
	t.Parallel()
	var r scripted.Recorder
	require.True(t, r.Empty())
	for _, by := range []string{callfault.Canceled, callfault.TimeLimit} {
		e := &callfault.EndedError{By: by, Depth: callfault.OwnLimit}
		_, err := r.Model(asked{err: e}.model()).Call(t.Context(), request("# Task: a"), nil)
		require.Equal(t, e, err)
		require.Equal(t, by == callfault.Canceled, r.Empty())
	}
}
