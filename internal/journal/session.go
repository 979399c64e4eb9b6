package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/runteam/runteam/internal/record"
)

// turnFile is the name under which a journal stores what the person said in a turn of a session. No
// file has such a name.
const turnFile = "--message"

// ErrTurnTaken reports that another process has added the same turn to a session. It wraps [ErrLeased].
var ErrTurnTaken error = turnTakenError{}

type turnTakenError struct{}

func (turnTakenError) Error() string {
	return "another process has continued the session; resume it to go on from there"
}

func (turnTakenError) Unwrap() error { return ErrLeased }

// ErrNoSession reports a run that is no turn of a session.
var ErrNoSession = errors.New("the run is no turn of a session")

// errNoSessions reports that no run is a turn of a session.
var errNoSessions error = noSessionsError{}

type noSessionsError struct{}

func (noSessionsError) Error() string { return "the journal has no sessions" }

func (noSessionsError) Unwrap() error { return ErrNoSession }

// SetTurn makes a run a turn of a session.
func (i *Info) SetTurn(t *record.SessionTurn) {
	if t == nil {
		return
	}
	i.Turn = t
	i.Files = append(slices.DeleteFunc(slices.Clone(i.Files), func(f File) bool { return f.Path == turnFile }), File{Path: turnFile, Text: t.Text, Label: t.Label})
	i.Label = i.Label.Join(t.Label)
}

// takeTurn moves what the person said from the files to the turn.
func (i *Info) takeTurn() {
	at := slices.IndexFunc(i.Files, func(f File) bool { return f.Path == turnFile })
	if i.Turn == nil || at < 0 {
		return
	}
	f := &i.Files[at]
	i.Turn.Text, i.Turn.Missing, i.Turn.Label = f.Text, f.Missing, f.Label // as the digest of the file covers them
	i.Files = slices.Delete(i.Files, at, at+1)
}

// rowOf returns the row of a run that begins.
func rowOf(info *Info) runRow {
	r := runRow{id: info.Run, name: info.Name, command: info.Command, starter: info.Starter, spec: info.Spec, started: info.Time}
	if t := info.Turn; t != nil && !t.Repeats {
		r.session, r.place = t.Session, t.Turn
	}
	return r
}

// sessionRuns returns the runs of a session, in the order of its turns.
func (s *store) sessionRuns(ctx context.Context, session string) ([]row, error) {
	return readAll(ctx, s.db, scanRun, s.selectRuns()+`
where s.session = $1 and coalesce(t.status, '') <> $2 order by s.turn`, session, removed)
}

// LoadSession returns the turns of the session that a run is a turn of, in order, without those that are not there. The run is
// named as for [Journal.Find]: the ID of a session is that of its first run. The error wraps [ErrNoSession] if
// the run is no turn of a session, or repeats one of a session of which no turn is there.
func (j *Journal) LoadSession(ctx context.Context, run string) ([]record.StoredTurn, error) {
	list, err := sessionOf(ctx, j.archive, run)
	if err != nil {
		return nil, err
	}
	turns := make([]record.StoredTurn, 0, len(list))
	for _, r := range list {
		s, err := j.load(ctx, r.n, r.id)
		if err != nil {
			return nil, err
		}
		if s.Info.Turn == nil {
			return nil, j.fail("read", fmt.Errorf("run %s: it does not say which turn of its session it is", r.id))
		}
		t := record.StoredTurn{SessionTurn: *s.Info.Turn, Run: r.id, Began: r.started, History: &s.History}
		if j.live(r.held) {
			t.Busy = &LeaseError{Run: r.id, Holder: r.held.Holder, Me: j.me, Since: r.held.Taken}
		}
		turns = append(turns, t)
	}
	return turns, nil
}

// sessionOf returns the rows of the session that a run is a turn of, in order.
func sessionOf(ctx context.Context, a *archive, run string) ([]row, error) {
	r, err := findSession(ctx, a, run)
	if err != nil {
		return nil, err
	}
	session := r.session
	if session == "" {
		s, err := a.LoadStart(ctx, r.id)
		if err != nil {
			return nil, err
		}
		if s.Info.Turn == nil {
			return nil, fmt.Errorf("%w: run %s", ErrNoSession, r.id)
		}
		session = s.Info.Turn.Session // it repeats a turn
	}
	list, err := a.store.sessionRuns(ctx, session)
	if err == nil {
		list, err = a.visible(ctx, list)
	}
	if err != nil {
		return nil, a.fail("read", err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: run %s", ErrNoSession, r.id)
	}
	return list, nil
}

// findSession finds a run for a session. With an empty prefix, that is the newest run of any session.
func findSession(ctx context.Context, a *archive, prefix string) (row, error) {
	if prefix != "" {
		return a.find(ctx, prefix)
	}
	list, err := a.runs(ctx, "", all)
	if err != nil {
		return row{}, a.fail("read", err)
	}
	for _, r := range list {
		if r.session != "" {
			return r, nil
		}
	}
	return row{}, errNoSessions
}
