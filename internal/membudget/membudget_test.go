package membudget_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/membudget"
)

func TestTakeIsWithinAllScopes(t *testing.T) {
	t.Parallel()
	outer, endOuter := membudget.Within(t.Context(), 100)
	inner, endInner := membudget.Within(outer, 80)
	require.NoError(t, membudget.Take(inner, 70))
	require.ErrorIs(t, membudget.Take(inner, 11), membudget.ErrFull, "of the scope")
	require.ErrorContains(t, membudget.Refused(inner), "11 bytes more, of 80 bytes")
	require.NoError(t, membudget.Take(outer, 30))
	require.ErrorIs(t, membudget.Take(inner, 1), membudget.ErrFull, "of the one around it")
	require.NoError(t, membudget.Refused(outer))
	endInner()
	require.NoError(t, membudget.Take(outer, 70), "what an ended scope took is free")
	require.ErrorIs(t, membudget.Take(inner, 0), membudget.ErrFull, "an ended scope takes nothing")
	endInner()
	require.ErrorIs(t, membudget.Take(outer, 1), membudget.ErrFull, "it is given back once")
	endOuter()
}

// A call that is abandoned may outlive its attempt, in whose end what the call took was given back.
func TestScopesMayEndInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		root, end := membudget.Within(context.Background(), 1000)
		defer end()
		scopes, ends := []context.Context{root}, []func(){}
		for range rapid.IntRange(1, 20).Draw(t, "scopes") {
			scope, end := membudget.Within(rapid.SampledFrom(scopes).Draw(t, "around"), 1000)
			scopes, ends = append(scopes, scope), append(ends, end)
			_ = membudget.Take(scope, int64(rapid.IntRange(0, 300).Draw(t, "bytes")))
		}
		for _, end := range rapid.Permutation(ends).Draw(t, "ends") {
			end()
		}
		require.NoError(t, membudget.Take(root, 1000))
		require.ErrorIs(t, membudget.Take(root, 1), membudget.ErrFull)
	})
}

func TestTheProcessMayTakeHalfOfItsMemory(t *testing.T) {
	t.Parallel()
	most := membudget.OfProcess()
	require.Greater(t, most, int64(64<<20))
	for range 4 {
		require.NoError(t, membudget.Take(t.Context(), most/4), "what nobody would give back is not taken")
	}
	err := membudget.Take(t.Context(), most)
	require.ErrorIs(t, err, membudget.ErrFull)
	require.ErrorContains(t, err, "half of its memory; run fewer tasks at once")
}

func TestReaderTakesWhatDecodingNeeds(t *testing.T) {
	t.Parallel()
	text := "[" + strings.Repeat("[],", 1000) + "[]]"
	scope, end := membudget.Within(t.Context(), membudget.Decoded(text))
	defer end()
	got, err := io.ReadAll(membudget.Reader(scope, iotest.OneByteReader(strings.NewReader(text))))
	require.NoError(t, err)
	require.Equal(t, text, string(got))
	require.ErrorIs(t, membudget.Take(scope, 1), membudget.ErrFull)
	_, err = io.ReadAll(membudget.Reader(scope, strings.NewReader(text)))
	require.ErrorIs(t, err, membudget.ErrFull)
}

// Who stops reading in the middle of an event has it given back with its scope.
func TestEventsEndWithTheirScope(t *testing.T) {
	t.Parallel()
	outer, endOuter := membudget.Within(t.Context(), 1000)
	defer endOuter()
	scope, end := membudget.Within(outer, 1000)
	_, err := membudget.Events(scope, strings.NewReader("data: half")).Read(make([]byte, 10))
	require.NoError(t, err)
	require.ErrorIs(t, membudget.Take(outer, 1000), membudget.ErrFull)
	end()
	require.NoError(t, membudget.Take(outer, 1000))
}

// A stream without an end takes what its largest event needs.
func TestEventsGiveBackWhatTheyTook(t *testing.T) {
	t.Parallel()
	for _, newline := range []string{"\n", "\r\n"} {
		event := "data: " + strings.Repeat("[],", 1000) + newline + newline
		scope, end := membudget.Within(t.Context(), 3*membudget.Decoded(event))
		defer end()
		n, err := io.Copy(io.Discard, membudget.Events(scope, strings.NewReader(strings.Repeat(event, 50))))
		require.NoError(t, err)
		require.Equal(t, int64(50*len(event)), n)
		_, err = io.Copy(io.Discard, membudget.Events(scope, strings.NewReader(strings.ReplaceAll(strings.Repeat(event, 50), newline, ""))))
		require.ErrorIs(t, err, membudget.ErrFull, "one event")
	}
}
