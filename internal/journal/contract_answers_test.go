package journal_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
)

func answersOfOtherRuns(t *testing.T, open openFunc) {
	j := openJournal(t, open, journal.Options{})
	for _, id := range []string{"r1", "r2", "r3"} {
		r, fake := beginRun(t, j, id), newFakeRun(id, 1)
		require.NoError(t, appendEntries(r, record.Entry{Exchange: fake.Answer(fake.Task(1), "the answer of "+id, answerKey(7))}, record.Entry{Exchange: fake.Answer(fake.Task(2), "another", answerKey(8))}))
		if id == "r3" {
			list, err := cachedAnswers(t.Context(), r, answerKey(7))
			require.NoError(t, err)
			require.Len(t, list, 2, "its own answer is not another's")
			require.Equal(t, "the answer of r2", list[0].Result.Text)
			require.Equal(t, "the answer of r1", list[1].Result.Text)
			list, err = cachedAnswers(t.Context(), r, answerKey(9))
			require.NoError(t, err)
			require.Empty(t, list)
		}
	}
}

func onlyReusableAnswers(t *testing.T, open openFunc) {
	clock := &testClock{now: noon.Add(time.Hour)}
	j := openJournal(t, open, journal.Options{Now: clock.time})
	r, fake := beginRun(t, j, "r1"), newFakeRun("r1", 1)
	for n, change := range []func(x *record.AgentCall){
		func(*record.AgentCall) {},
		func(x *record.AgentCall) { x.Reusable = false },
		func(x *record.AgentCall) { x.Code, x.Error, x.Result = "TIMEOUT", "no answer", nil },
		func(x *record.AgentCall) { x.Result.Text += "!" }, // its digest is another
	} {
		x := fake.Answer(fake.Task(n), "answer", answerKey(n))
		change(x)
		require.NoError(t, appendEntries(r, record.Entry{Exchange: x}))
	}
	short := fake.Short(fake.Task(4), time.Hour+time.Minute, answerKey(4))
	require.NoError(t, appendEntries(r, record.Entry{Exchange: short}))
	asks := beginRun(t, j, "r2")
	has := func(n int) bool {
		list, err := cachedAnswers(t.Context(), asks, answerKey(n))
		require.NoError(t, err)
		return len(list) == 1
	}
	require.True(t, has(0))
	for n := 1; n < 4; n++ {
		require.False(t, has(n), n)
	}
	require.True(t, has(4))
	clock.set(noon.Add(time.Hour + time.Minute))
	require.False(t, has(4), "it has expired")
}

func runIsFoundByPrefix(t *testing.T, open openFunc) {
	j := openJournal(t, open, journal.Options{})
	_, err := j.Find(t.Context(), "")
	require.ErrorIs(t, err, journal.ErrUnknownRun)
	require.ErrorContains(t, err, "no runs yet")
	for _, id := range []string{"abc", "abd", "ab", "x%_"} {
		endRun(t, beginRun(t, j, id))
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

// cachedAnswers returns the cached answers of other runs under a key.
func cachedAnswers(ctx context.Context, log record.Log, key record.Key) (list []*record.AgentCall, err error) {
	for answer, err := range log.CachedAnswers(ctx, key) {
		if err != nil {
			return nil, err
		}
		list = append(list, answer)
	}
	return list, nil
}
