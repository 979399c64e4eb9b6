package journal

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/steer"
)

// Steer sends a command to the process that works on a run, which is named as for [Journal.Find],
// and waits up to [takeWait] until that process has taken it. The command is for that process
// alone: if it does not take the command in time, or ends before, Steer withdraws the command, which
// has no effect then.
//
// The error wraps [steer.ErrInvalid], [steer.ErrNotRunning] if no process works on the run or does
// not any more, [steer.ErrRefused] if the process refuses the command, or [ErrNoKey] if the command
// has a text above confidential and the journal has no key. The error of a refused policy also wraps
// [steer.ErrStale] or [steer.ErrWidens], or has everything that is wrong as [task.Problems].
//
// A submitted run that waits for a worker, or whose worker was lost, can be paused and canceled too, which takes effect
// at once. A message to it waits for the process that takes the run, which has it before it begins a task.
func (j *Journal) Steer(ctx context.Context, run string, c steer.Command) error {
	if err := j.writable(); err != nil {
		return j.fail("write", err)
	}
	if err := c.Check(); err != nil {
		return err
	}
	if j.vault.hides(c.Classification) && j.vault.sealer == nil {
		return fmt.Errorf("%w: the text is above confidential, and without a key the journal cannot hand it on", ErrNoKey)
	}
	r, err := j.find(ctx, run)
	if err != nil {
		return err
	}
	if !j.live(r.held) {
		switch {
		case r.queue != nil && (c.Kind == steer.Cancel || c.Kind == steer.Pause):
			return j.steerQueued(ctx, r, c)
		case r.queue == nil || c.Kind != steer.Message:
			return fmt.Errorf("run %s: %w", r.id, steer.ErrNotRunning)
		}
	}
	of := nextProcess
	if j.live(r.held) {
		of = r.held.tenure()
	}
	left := leftLine{Command: c, Time: j.now(), For: of}
	if j.vault.sealer != nil { // else the process could not read it, and the row has it only until that takes it
		if left.level, err = j.labelOf(ctx, &r); err != nil {
			return j.fail("read", err)
		}
	}
	if c.Policy != nil {
		if left.Policy, err = record.NewPolicy(c.Policy, "", nil); err != nil {
			return fmt.Errorf("%w: %w", steer.ErrInvalid, err)
		}
	}
	n, err := j.store.commands.leave(ctx, r.n, func(l *lease) bool {
		return l != nil && l.tenure() == of || of == nextProcess && !j.live(l)
	}, func(n int64) ([]byte, error) { return encodeLeft(j.vault, r.id, n, left) })
	switch {
	case of != nextProcess && err == nil:
		err = (&sentCommand{j, r, n}).awaitOutcome(ctx)
	case of == nextProcess && errors.Is(err, steer.ErrNotRunning): // a process has taken the run meanwhile
		return j.Steer(ctx, run, c)
	}
	if _, ours := errors.AsType[*Error](err); err != nil && !ours {
		err = fmt.Errorf("run %s: %w", r.id, err)
	}
	return err
}

// nextProcess is the tenure of a command that is for the process which takes a run next.
var nextProcess tenure

// leave adds a command to a run with a lease that it fits, and returns its number. line returns the line of a command with a
// number.
func (s *commandTable) leave(ctx context.Context, run int64, fits func(*lease) bool, line func(n int64) ([]byte, error)) (n int64, err error) {
	err = s.db.Write(ctx, func(tx Tx, again bool) error {
		l, err := leaseOf(ctx, tx, s.db, run, s.db.Lock())
		if err == nil && !fits(l) {
			err = steer.ErrNotRunning
		}
		if err != nil {
			return err
		}
		if again && n > 0 {
			err := queryRow(ctx, tx, "select n from commands where n = $1", []any{n}, &n)
			if !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
		// The row gets its number first, which its line is bound to.
		if err := queryRow(ctx, tx, "insert into commands (run, kind, subject, outcome, line) values ($1, $2, $3, '', $3) returning n", []any{run, commandSteer, []byte{}}, &n); err != nil {
			return err
		}
		text, err := line(n)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "update commands set subject = $1, line = $2 where n = $3", binary.BigEndian.AppendUint64(nil, uint64(n)), text, n)
		return err
	})
	return n, err
}

// claim returns the commands that wait for the process which has the lease of a run, the
// oldest first. From now on this process alone decides about them: their senders cannot withdraw
// them while they take effect.
func (s *commandTable) claim(ctx context.Context, run int64, of tenure) (list []storedCommand, err error) {
	waiting, err := s.waiting(ctx, run, commandSteer)
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	err = s.db.Write(ctx, func(tx Tx, _ bool) error {
		l, err := leaseOf(ctx, tx, s.db, run, s.db.Lock())
		if err != nil || l == nil || l.tenure() != of {
			return err
		}
		if _, err := tx.ExecContext(ctx, "update commands set outcome = $1 where run = $2 and kind = $3 and outcome = ''", commandClaimed, run, commandSteer); err != nil {
			return err
		}
		list, err = queryAll(ctx, tx, scanCommand, selectCommands, run, commandSteer, commandClaimed)
		return err
	})
	return list, err
}

// LeftBefore reports whether commands waited when the run was opened; see [record.AnswerLog].
func (r *Run) LeftBefore() bool { return r.leftBefore }

// Commands returns the commands that other processes sent to this one; see [record.AnswerLog]. It refuses
// those that are forged, and warns of them.
func (r *Run) Commands(ctx context.Context) (list []record.LeftCommand, err error) {
	rows, err := r.j.store.commands.claim(ctx, r.row.n, r.tenure)
	if err != nil {
		return nil, r.j.fail("read", err)
	}
	d := &decoder{vault: r.j.vault, run: r.row.id}
	for _, row := range rows {
		c, of := d.left(row.line, row.n)
		if isForged(c.Missing) {
			if err := r.refuseForged(ctx, "a command", row.n); err != nil {
				return nil, err
			}
			continue
		}
		if c.Missing == "" && (of != r.tenure && of != nextProcess || r.hasDecided(c.Number)) {
			if err := r.Refuse(ctx, c.Number, "it was for a process that has ended"); err != nil {
				return nil, err
			}
			continue
		}
		list = append(list, c)
	}
	return list, nil
}

// hasDecided reports whether a command was taken or refused. Its row may have been copied before.
func (r *Run) hasDecided(n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.decided[n]
}

// Why it is not known that a command takes effect.
var (
	errEndedFirst = fmt.Errorf("%w: it ended before it took the command, which has no effect", steer.ErrNotRunning)
	errNotTaken   = fmt.Errorf("the process that works on it did not take the command within %v; the command was withdrawn and has no effect", takeWait)
	errUndecided  = errors.New("the process that works on it has read the command and not decided yet; it may still take effect")
)

// awaitOutcome waits until the process of the run has decided about the command, and withdraws the
// command if that takes too long.
func (s *sentCommand) awaitOutcome(ctx context.Context) error {
	stop := context.WithoutCancel(ctx) // the row must not stay behind
	for began := time.Now(); ; _ = wait(ctx, takeLook) {
		outcome, gone, err := s.lookUp(stop)
		var why error // to withdraw it
		switch waited := time.Since(began); {
		case err != nil:
			return err
		case outcome == commandTaken:
			return nil
		case outcome == commandClaimed && gone:
			return errEndedFirst
		case outcome == commandClaimed && (waited >= 2*takeWait || ctx.Err() != nil):
			return errUndecided
		case outcome == commandClaimed:
			continue
		case outcome != "":
			return record.RefusalError(outcome)
		case gone:
			why = errEndedFirst
		case ctx.Err() != nil:
			why = fmt.Errorf("the command was withdrawn: %w", ended(ctx))
		case waited >= takeWait:
			why = errNotTaken
		default:
			continue
		}
		withdrawn, err := s.j.store.commands.end(stop, s.n, commandWithdrawn)
		if err != nil {
			return fmt.Errorf("the command could not be withdrawn, and may still take effect: %w", s.j.fail("write", err))
		}
		if withdrawn { // or it was decided meanwhile
			return why
		}
	}
}

// lookUp returns the outcome of the command, and whether the process that it is for is gone, so that
// the outcome does not change any more.
func (s *sentCommand) lookUp(ctx context.Context) (outcome string, gone bool, err error) {
	j := s.j
	l, err := j.store.lease(ctx, s.run.n) // first: the lease ends after the outcome
	if err != nil {
		return "", false, j.fail("read", err)
	}
	gone = l == nil || l.tenure() != s.run.held.tenure() || l.liveness(j.me) == dead
	outcome, err = j.store.commands.outcome(ctx, s.n)
	if errors.Is(err, sql.ErrNoRows) { // the run was removed
		return "", true, errEndedFirst
	}
	return outcome, gone, j.fail("read", err)
}
