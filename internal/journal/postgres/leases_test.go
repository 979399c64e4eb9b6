package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/pgtest"
	"github.com/runteam/runteam/internal/slowtest"
)

// host returns this process on a host with another boot ID. All hosts have the same name.
func host(boot string) *journal.Holder {
	h := journal.ThisHolder()
	h.Boot = boot
	return &h
}

// shifted returns a clock that is wrong by so much.
func shifted(by time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(by) }
}

// unrenewed returns for how many seconds the lease in a world has not been renewed, by the clock of the server.
func (w *world) unrenewed(t *testing.T) float64 {
	t.Helper()
	return float64(w.value(t, "select (extract(epoch from clock_timestamp()) * 1000)::bigint - seen / 1000000 from leases")) / 1000
}

// Wrong clocks of hosts change nothing: a process that renews its lease keeps its run, and one that does not loses it to
// another host after 15 s, and writes nothing more.
func TestWrongClocksDoNotCount(t *testing.T) {
	t.Parallel()
	slowtest.Only(t)
	for name, by := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{direct: pgtest.Address(t)}
			w.proxy, w.address = newProxy(t, w.direct)
			w.j = open(t, w.address, journal.Options{Holder: host("one"), Now: shifted(by)})
			w.begin(t)
			w.add(t)
			former := w.run
			w.j = open(t, w.direct, journal.Options{Holder: host("two"), Now: shifted(-by)})
			began := time.Now()
			_, _, err := w.j.Resume(t.Context(), "r1")
			require.ErrorIs(t, err, journal.ErrLeased)
			require.Less(t, time.Since(began), 8*time.Second, "until its next beat")

			w.proxy.block(true)
			before := w.unrenewed(t)
			began = time.Now()
			w.resume(t)
			require.InDelta(t, 15.5, before+time.Since(began).Seconds(), 1.2)
			w.add(t)
			w.proxy.block(false)
			require.ErrorIs(t, add(former, ready("late")), journal.ErrLost)
			w.works(t)
			w.end(t)
			list, err := w.j.Runs(t.Context())
			require.NoError(t, err)
			require.Nil(t, list[0].Holder)
		})
	}
}

// When a process was seen last is by its own clock, like what it recorded, although the clock of the server judges its lease.
func TestFormerProcessWasAliveByItsClock(t *testing.T) {
	t.Parallel()
	w := &world{direct: pgtest.Address(t)}
	w.address = w.direct
	dead := journal.ThisHolder()
	dead.Started += "0"
	w.j = open(t, w.direct, journal.Options{Holder: &dead, Now: shifted(time.Hour)})
	w.begin(t)
	w.j = open(t, w.direct, journal.Options{Now: shifted(-time.Hour)})
	_, s, err := w.j.Resume(t.Context(), "r1")
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(time.Hour), s.History.Alive, time.Minute)
}

// While a server is down, the leases in it do not grow old: their processes keep their runs, however long another one has
// watched them.
func TestLeasesOfAServerThatWasDown(t *testing.T) {
	t.Parallel()
	slowtest.Only(t)
	s := pgtest.Start(t)
	w := &world{direct: s.Address(nil)}
	w.address = w.direct
	w.j = open(t, w.direct, journal.Options{Holder: host("one")})
	w.begin(t)
	other := open(t, w.direct, journal.Options{Holder: host("two")})
	resume := func(result chan<- error) {
		_, _, err := other.Resume(context.WithoutCancel(t.Context()), "r1")
		result <- err
	}
	before, after := make(chan error, 1), make(chan error, 1)
	go resume(before)
	time.Sleep(200 * time.Millisecond)
	s.Kill(t)
	time.Sleep(20 * time.Second)
	s.Restart(t)
	go resume(after)
	w.add(t)
	require.ErrorIs(t, <-before, journal.ErrLeased)
	require.ErrorIs(t, <-after, journal.ErrLeased)
	w.works(t)
}

// A commit of which the server has only a part, since its process was stopped or its host is gone, locks the lease no
// longer than 5 s once another process waits for it.
func TestStalledCommitLocksNothing(t *testing.T) {
	t.Parallel()
	slowtest.Only(t)
	w := &world{direct: pgtest.Address(t)}
	w.proxy, w.address = newProxy(t, w.direct)
	dead := journal.ThisHolder()
	dead.Started += "0"
	w.j = open(t, w.address, journal.Options{Holder: &dead})
	w.begin(t)
	w.add(t)
	f := w.proxy.inject(stalled, "insert into batches")
	late := make(chan error, 1)
	former := w.run
	go func() { late <- add(former, ready("late")) }()
	<-f.hit
	w.j = open(t, w.direct, journal.Options{})
	began := time.Now()
	w.resume(t)
	require.Less(t, time.Since(began), 8*time.Second)
	w.works(t)
	require.ErrorIs(t, <-late, journal.ErrLost)
	w.works(t)
}
