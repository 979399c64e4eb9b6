package journaltest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
)

func recalls(t *testing.T, open Open) {
	j := opened(t, open, journal.Options{})
	for _, id := range []string{"r1", "r2", "r3"} {
		r, story := begun(t, j, id), NewTeller(id, 1)
		require.NoError(t, Append(r, record.Entry{Exchange: story.Answer(story.Task(1), "the answer of "+id, Key(7))}, record.Entry{Exchange: story.Answer(story.Task(2), "another", Key(8))}))
		if id == "r3" {
			list, err := Cached(t.Context(), r, Key(7))
			require.NoError(t, err)
			require.Len(t, list, 2, "its own answer is not another's")
			require.Equal(t, "the answer of r2", list[0].Result.Text)
			require.Equal(t, "the answer of r1", list[1].Result.Text)
			list, err = Cached(t.Context(), r, Key(9))
			require.NoError(t, err)
			require.Empty(t, list)
		}
	}
}

func recallsOnlyWhatMayBeTaken(t *testing.T, open Open) {
	clock := &at{now: Noon.Add(time.Hour)}
	j := opened(t, open, journal.Options{Now: clock.time})
	r, story := begun(t, j, "r1"), NewTeller("r1", 1)
	for n, change := range []func(x *record.AgentCall){
		func(*record.AgentCall) {},
		func(x *record.AgentCall) { x.Reusable = false },
		func(x *record.AgentCall) { x.Code, x.Error, x.Result = "TIMEOUT", "no answer", nil },
		func(x *record.AgentCall) { x.Result.Text += "!" }, // its digest is another
	} {
		x := story.Answer(story.Task(n), "answer", Key(n))
		change(x)
		require.NoError(t, Append(r, record.Entry{Exchange: x}))
	}
	short := story.Short(story.Task(4), time.Hour+time.Minute, Key(4))
	require.NoError(t, Append(r, record.Entry{Exchange: short}))
	asks := begun(t, j, "r2")
	has := func(n int) bool {
		list, err := Cached(t.Context(), asks, Key(n))
		require.NoError(t, err)
		return len(list) == 1
	}
	require.True(t, has(0))
	for n := 1; n < 4; n++ {
		require.False(t, has(n), n)
	}
	require.True(t, has(4))
	clock.set(Noon.Add(time.Hour + time.Minute))
	require.False(t, has(4), "it has expired")
}

func found(t *testing.T, open Open) {
	j := opened(t, open, journal.Options{})
	_, err := j.Find(t.Context(), "")
	require.ErrorIs(t, err, journal.ErrUnknownRun)
	require.ErrorContains(t, err, "no runs yet")
	for _, id := range []string{"abc", "abd", "ab", "x%_"} {
		closed(t, begun(t, j, id))
	}
	for prefix, want := range map[string]string{"": "x%_", "abc": "abc", "ab": "ab", "x": "x%_", "x%": "x%_"} {
		s, err := j.Find(t.Context(), prefix)
		require.NoError(t, err, prefix)
		require.Equal(t, want, s.Run, prefix)
	}
	var ambiguous *journal.AmbiguousRunError
	_, err = j.Load(t.Context(), "a")
	require.ErrorAs(t, err, &ambiguous)
	require.Equal(t, []string{"ab", "abd", "abc"}, ambiguous.Runs)
	for _, prefix := range []string{"_", "%", "AB", "abcd"} {
		_, err = j.Find(t.Context(), prefix)
		require.ErrorIs(t, err, journal.ErrUnknownRun, prefix)
		require.ErrorContains(t, err, "x%_", "it names the newest")
	}
}
