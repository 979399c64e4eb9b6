package journal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// elsewhere holds a run on another host.
var elsewhere = with(func(h *Holder) { h.Host = "vm2" })

func heldBy(h Holder, renewed time.Duration) *lease {
	return &lease{Holder: h, Beat: 41, Taken: noon.Add(-time.Hour), Renewed: noon.Add(renewed)}
}

func TestHolderIsJudgedAtFirstSight(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		holder  Holder
		renewed time.Duration // from our now
		of      liveness
		want    leaseVerdict
	}{
		{"it runs", self, -3 * time.Second, alive, taken},
		{"it runs and has not renewed for a day", with(func(*Holder) {}), -24 * time.Hour, alive, taken},
		{"it runs, with a clock that is ahead", with(func(*Holder) {}), time.Hour, alive, taken},
		{"it is dead", with(func(*Holder) {}), -time.Second, dead, free},
		{"it is dead, with a clock that is ahead", with(func(*Holder) {}), time.Hour, dead, free},
		{"elsewhere, just now", elsewhere, 0, unknown, watched},
		{"elsewhere, one tick before it is over", elsewhere, -leaseTime + 1, unknown, watched},
		{"elsewhere, over", elsewhere, -leaseTime, unknown, free},
		{"elsewhere, over for a year", elsewhere, -365 * 24 * time.Hour, unknown, free},
		{"elsewhere, a little ahead", elsewhere, 1, unknown, watched},
		{"elsewhere, an hour ahead", elsewhere, time.Hour, unknown, watched},
		{"elsewhere, a clock that never was", elsewhere, -200 * 365 * 24 * time.Hour, unknown, free},
		{"another run of this process", self, 0, alive, taken},
		{"left behind by another run of this process", self, -leaseTime, alive, watched},
		{"of this process, before the clock was set back", self, time.Hour, alive, watched},
	}
	for _, tt := range tests {
		l := heldBy(tt.holder, tt.renewed)
		got, wait := watch{self: self, first: l, at: noon}.rule(l, tt.of, 0)
		require.Equal(t, tt.want, got, tt.name)
		require.Equal(t, got == watched, wait > 0, tt.name)
	}
	got, _ := watch{self: self, at: noon}.rule(nil, unknown, 0)
	require.Equal(t, free, got, "nobody has it")
}

func TestHolderIsJudgedAgainLater(t *testing.T) {
	t.Parallel()
	first := heldBy(elsewhere, -time.Second)
	beat := *first
	beat.Beat++
	back := *first
	back.Beat--
	third := with(func(h *Holder) { h.Host = "vm3" })
	changed := first.next(third, noon)
	renewedOnly := *first
	renewedOnly.Renewed = noon.Add(-time.Hour)
	copied := *first
	copied.Holder = third
	tests := []struct {
		name  string
		now   *lease
		of    liveness
		since time.Duration
		want  leaseVerdict
		wait  time.Duration
	}{
		{"nothing yet", first, unknown, 4 * time.Second, watched, time.Second},
		{"nothing, almost", first, unknown, leaseTime - 200*time.Millisecond, watched, 200 * time.Millisecond},
		{"nothing for the time of a lease", first, unknown, leaseTime, free, 0},
		{"a beat", &beat, unknown, 4 * time.Second, taken, 0},
		{"a beat, at the last moment", &beat, unknown, leaseTime, taken, 0},
		{"a beat of a store that was put back", &back, unknown, leaseTime, taken, 0},
		{"given up", nil, unknown, 4 * time.Second, free, 0},
		{"somebody else was first", &changed, unknown, leaseTime, taken, 0},
		{"somebody else was first, and died", &changed, dead, 4 * time.Second, free, 0},
		{"another holder at the same beat", &copied, unknown, leaseTime, taken, 0},
		{"its time alone says nothing later", &renewedOnly, unknown, 4 * time.Second, watched, time.Second},
	}
	for _, tt := range tests {
		got, wait := watch{self: self, first: first, at: noon}.rule(tt.now, tt.of, tt.since)
		require.Equal(t, tt.want, got, tt.name)
		require.Equal(t, tt.wait, wait, tt.name)
	}
	got, _ := watch{self: self, at: noon}.rule(first, unknown, time.Second)
	require.Equal(t, taken, got, "there was none at the first look")
}

// TestLeaseIsFreeWithinItsTime plays watches to their end, with clocks that differ
// by any amount and are set while they run.
func TestLeaseIsFreeWithinItsTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		behind := time.Duration(rapid.Int64Range(-int64(leaseTime)+1, int64(1000*time.Hour)).Draw(t, "ahead of our clock"))
		last := time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(t, "beats until"))
		if rapid.Bool().Draw(t, "dead at once") {
			last = -1
		}
		phase := time.Duration(rapid.Int64Range(0, int64(beatEvery)).Draw(t, "phase"))
		at := func(since time.Duration) *lease {
			l := heldBy(elsewhere, behind)
			for next := phase; next <= min(since, last); next += beatEvery {
				*l = l.next(elsewhere, noon.Add(time.Duration(rapid.Int64().Draw(t, "clock"))))
			}
			return l
		}
		w := watch{self: self, first: at(-1), at: noon}
		for since := time.Duration(0); ; {
			l := at(since)
			got, wait := w.rule(l, unknown, since)
			if got != watched {
				require.LessOrEqual(t, since, leaseTime)
				require.Equal(t, l.same(w.first), got == free, "it is free if, and only if, it did not beat")
				if last >= beatEvery {
					require.Equal(t, taken, got, "whoever works keeps it")
					require.LessOrEqual(t, since, beatEvery+lookEvery, "and that is known soon")
				}
				return
			}
			require.Positive(t, wait)
			since += wait
		}
	})
}

// TestOneOfTwoGetsALease checks that whoever sees a lease that was just taken
// does not take it for the one that it watched, not even by its former holder.
func TestOneOfTwoGetsALease(t *testing.T) {
	t.Parallel()
	l := heldBy(elsewhere, -time.Second)
	mine := l.next(self, noon)
	require.False(t, mine.same(l))
	require.Equal(t, lease{Holder: self, Beat: 42, Taken: noon, Renewed: noon, before: l.Renewed}, mine)
	later := mine.next(self, noon.Add(beatEvery))
	require.Equal(t, lease{Holder: self, Beat: 43, Taken: noon, Renewed: noon.Add(beatEvery), before: noon}, later)
	back := mine.next(elsewhere, noon)
	require.False(t, back.same(l), "the beat goes on when a lease changes hands")
	first := (*lease)(nil).next(self, noon)
	require.Equal(t, lease{Holder: self, Beat: 1, Taken: noon, Renewed: noon}, first)
}

func TestLiveLease(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		renewed time.Duration
		of      liveness
		want    bool
	}{
		{"it runs", -time.Hour, alive, true},
		{"it is dead", 0, dead, false},
		{"it may run", -leaseTime + 1, unknown, true},
		{"it may have run", -leaseTime, unknown, false},
		{"its clock is ahead", time.Hour, unknown, true},
	} {
		require.Equal(t, tt.want, heldBy(elsewhere, tt.renewed).live(noon, tt.of), tt.name)
	}
	require.False(t, (*lease)(nil).live(noon, alive))
}

func TestLeaseErrorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	container := with(func(h *Holder) { h.Space = "pid:[2]" })
	for _, tt := range []struct {
		holder Holder
		since  time.Time
		want   string
	}{
		{with(func(*Holder) {}), noon, "run r1 is being worked on by process 7 on this host (vm) since 2026-03-14T12:00:00Z: wait until it ends, or stop it; the run can be resumed as soon as it is gone"},
		{container, noon, "run r1 is being worked on by process 7 on host vm (in another container) since 2026-03-14T12:00:00Z: wait until it ends, or stop it there; the run can be resumed 15 s after it is gone"},
		{elsewhere, time.Time{}, "run r1 is being worked on by process 7 on host vm2: wait until it ends, or stop it there; the run can be resumed 15 s after it is gone"},
		{self, noon, "run r1 is being worked on by this process since 2026-03-14T12:00:00Z: wait until that ends"},
	} {
		err := &LeaseError{Run: "r1", Holder: tt.holder, Me: self, Since: tt.since}
		require.EqualError(t, err, tt.want)
		require.ErrorIs(t, err, ErrLeased)
	}
}
