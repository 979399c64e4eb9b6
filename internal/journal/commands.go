package journal

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
)

// A command is what a process asks of the one that works on a run, now or once the run is
// resumed. It is a row beside the lines of the run, so it needs no lease. The process that has
// the lease carries it out, or refuses it.

// The kinds of commands: an answer, which waits for the next process if none works on the run, and
// a [steer.Command], which is for one process.
const (
	commandAnswer = "answer"
	commandSteer  = "steer"
)

// The outcomes of commands. An empty one says that a command waits; any other text, why it was
// refused.
const (
	commandTaken     = "taken"     // it was carried out
	commandClaimed   = "claimed"   // the process of the run has read it, and its sender cannot withdraw it
	commandWithdrawn = "withdrawn" // the sender does not wait any longer
)

// errCommandWaits reports that an equal command waits, or was taken.
var errCommandWaits = errors.New("an equal command waits")

// errOldForm reports a file of an earlier version, which the disk has no room to migrate.
var errOldForm = fmt.Errorf("%w: the journal has an earlier form, to which nothing can be added; remove runs, and try again", ErrFull)

// A commandTable is the table of commands.
type commandTable struct{ db Database }

// has reports whether the database has the form of a version.
func (s *commandTable) has(version int) bool { return s.db.Form() >= version }

// A storedCommand is a row of the table.
type storedCommand struct {
	n    int64
	line []byte
}

// errAskedMeanwhile reports that a person was asked something since a question was read.
var errAskedMeanwhile = errors.New("a person was asked meanwhile")

// addAnswer adds the answer to the question with a key to the commands of a run, and returns the
// command's number. The error is errCommandWaits if an answer to it waits or was taken, and
// errAskedMeanwhile if a row behind the last one that was seen may have a question or an answer. Unless check is nil, no
// other answer with a check is added meanwhile, and check gets those that wait, before these rows are read: one that is taken
// in between is in such a row.
func (s *commandTable) addAnswer(ctx context.Context, run, seen int64, key record.Key, line []byte, check func([]storedCommand) error) (n int64, err error) {
	err = s.db.Write(ctx, func(tx Tx, again bool) error {
		if check != nil {
			if lock := s.db.Lock(); lock != "" {
				if err := queryRow(ctx, tx, "select n from runs where n = $1"+lock, []any{run}, &run); err != nil {
					return err
				}
			}
			waiting, err := queryAll(ctx, tx, scanCommand, selectCommands, run, commandAnswer, commandClaimed)
			if err == nil {
				err = check(waiting)
			}
			if err != nil {
				return err
			}
		}
		rows, err := queryAll(ctx, tx, scanMarks, selectMarks, run, seen)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(rows, func(r markedRow) bool { return r.hasQuestions() }) {
			return errAskedMeanwhile
		}
		err = queryRow(ctx, tx, "insert into commands (run, kind, subject, outcome, line) values ($1, $2, $3, '', $4) on conflict do nothing returning n", []any{run, commandAnswer, key[:], line}, &n)
		if again && errors.Is(err, sql.ErrNoRows) { // it may be there since the first time
			err = queryRow(ctx, tx, "select n from commands where run = $1 and kind = $2 and subject = $3 and line = $4", []any{run, commandAnswer, key[:], line}, &n)
		}
		if errors.Is(err, sql.ErrNoRows) {
			return errCommandWaits
		}
		return err
	})
	return n, err
}

// answerTo returns the answer to the question with a key that waits; nil if there is none.
func (s *commandTable) answerTo(ctx context.Context, run int64, key record.Key) (*storedCommand, error) {
	var c storedCommand
	err := readRow(ctx, s.db, "select n, line from commands where run = $1 and kind = $2 and subject = $3 and outcome = ''", []any{run, commandAnswer, key[:]}, &c.n, &c.line)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &c, err
}

// selectCommands returns the commands of a kind that wait or are claimed, the oldest first.
const selectCommands = "select n, line from commands where run = $1 and kind = $2 and outcome in ('', $3) order by n"

func scanCommand(rows *sql.Rows, c *storedCommand) error { return rows.Scan(&c.n, &c.line) }

// waiting returns the commands of a kind that wait, the oldest first.
func (s *commandTable) waiting(ctx context.Context, run int64, kind string) ([]storedCommand, error) {
	if !s.has(withCommands) {
		return nil, nil
	}
	return readAll(ctx, s.db, scanCommand, selectCommands, run, kind, commandClaimed)
}

// outcome returns what became of a command; empty if it waits.
func (s *commandTable) outcome(ctx context.Context, n int64) (outcome string, err error) {
	err = readRow(ctx, s.db, "select outcome from commands where n = $1", []any{n}, &outcome)
	return outcome, err
}

// end sets the outcome of a command that waits, and reports whether it did. A command that
// was claimed is not withdrawn.
func (s *commandTable) end(ctx context.Context, n int64, outcome string) (ended bool, err error) {
	claimed := commandClaimed
	if outcome == commandWithdrawn {
		claimed = ""
	}
	for repeated := false; ; repeated = true {
		g := &Group{Statements: []Statement{{Query: "update commands set outcome = $1, line = $2 where n = $3 and outcome in ('', $4)", Args: []any{outcome, []byte{}, n, claimed}}}}
		err = s.db.Commit(ctx, []*Group{g})
		ended = err == nil && g.Statements[0].Changed > 0
		if !errors.Is(err, ErrUncertain) && (ended || err != nil || !repeated) {
			return ended, err
		}
		is, err := s.outcome(ctx, n) // what was sent first may have set it
		if err != nil || is != "" && is != claimed {
			return is == outcome, err
		}
	}
}

// waitingAnswers returns the answers that wait for a process to take them. A row that cannot be read as an
// answer was not written by this program, and is returned as a forged one, see [isForged].
func (a *archive) waitingAnswers(ctx context.Context, run int64, id string) (list []record.Answer, err error) {
	rows, err := a.store.commands.waiting(ctx, run, commandAnswer)
	if err != nil {
		return nil, a.fail("read", err)
	}
	d := &decoder{vault: a.vault, run: id}
	for _, c := range rows {
		answer, err := d.answer(c.line)
		if err != nil {
			answer = &record.Answer{Missing: ErrAltered.Error()}
		}
		answer.Command = c.n
		list = append(list, *answer)
	}
	return list, nil
}

// isForged reports whether the text of an answer or a command is missing because another program wrote or changed it.
func isForged(missing string) bool { return missing == ErrAltered.Error() }

// whyForged says which of the answers and commands that wait for a run is forged; empty if none is.
func whyForged(answers []record.Answer, commands []storedCommand, d *decoder) string {
	const ending = " waits beside the record that was altered, or was not written by runteam; a resumed run refuses it"
	if slices.ContainsFunc(answers, func(w record.Answer) bool { return isForged(w.Missing) }) {
		return "an answer of a person" + ending
	}
	for _, c := range commands {
		if left, _ := d.left(c.line, c.n); isForged(left.Missing) {
			return "a command" + ending
		}
	}
	return ""
}

// Waiting returns the answers that other processes left; see [record.AnswerLog]. It refuses those that
// are forged, and warns of them.
func (r *Run) Waiting(ctx context.Context) ([]record.Answer, error) {
	list, err := r.j.waitingAnswers(ctx, r.row.n, r.row.id)
	if err != nil {
		return nil, err
	}
	written := list[:0]
	for i := range list {
		if !isForged(list[i].Missing) {
			written = append(written, list[i])
			continue
		}
		if err := r.refuseForged(ctx, "an answer", list[i].Command); err != nil {
			return nil, err
		}
	}
	return written, nil
}

// refuseForged refuses an answer or a command that is forged, and warns of it.
func (r *Run) refuseForged(ctx context.Context, what string, n int64) error {
	r.warnForged(what)
	return r.Refuse(ctx, n, "it cannot be read: it is "+ErrAltered.Error())
}

// warnForged warns of an answer or a command that is forged. It quotes nothing of it.
func (r *Run) warnForged(what string) {
	r.j.o.Logger.Warn(what+" in the journal was altered, or was not written by runteam; it is not used", "run", r.row.id)
}

// reportForged warns of the answers of a stored run that are forged, whether they wait or not.
func (r *Run) reportForged(ctx context.Context) error {
	for i := range r.history.Log {
		if a := r.history.Log[i].Answer; a != nil && isForged(a.Missing) {
			r.warnForged("an answer")
		}
	}
	_, err := r.Waiting(ctx)
	return err
}

// Refuse ends the wait of an answer or another command; see [record.AnswerLog].
func (r *Run) Refuse(ctx context.Context, command int64, why string) error {
	r.mu.Lock()
	r.decided[command] = true
	r.mu.Unlock()
	_, err := r.j.store.commands.end(ctx, command, why)
	return r.j.fail("write", err)
}

// Mask returns the stored form of a key; see [record.AnswerLog].
func (r *Run) Mask(key record.Key) record.Key { return r.j.vault.mask(key) }

// ErrRefused reports an answer that the process that works on the run did not take. The text
// says why.
var ErrRefused = errors.New("the run does not take the answer")

// How long [Journal.Answer] and [Journal.Steer] wait for the process that works on the run, and how
// often they look.
const (
	takeWait = 5 * time.Second
	takeLook = 200 * time.Millisecond
)

// A sentCommand is a command that this process has sent to the one that works on a run.
type sentCommand struct {
	j   *Journal
	run row
	n   int64
}

// awaitTaken waits until the process that works on the run has decided about the answer to a
// question, for as long as [takeWait]. It reports whether that process took it; if not,
// the answer waits for a resume.
func (s *sentCommand) awaitTaken(ctx context.Context, q *runstate.Question) (taken bool, err error) {
	j := s.j
	for until := time.Now().Add(takeWait); ; {
		now, err := j.find(ctx, s.run.id)
		if err != nil {
			return false, err
		}
		outcome, err := j.store.commands.outcome(ctx, s.n)
		switch {
		case err != nil:
			return false, j.fail("read", err)
		case outcome == commandTaken:
			return true, nil
		case outcome != "":
			return false, fmt.Errorf("%w: %s", ErrRefused, outcome)
		}
		if err := s.withdrawAnswer(ctx, q); err != nil {
			return false, err
		}
		if !j.live(now.held) || time.Now().After(until) {
			return false, nil
		}
		if err := wait(ctx, takeLook); err != nil {
			return false, err
		}
	}
}

// withdrawAnswer ends the wait of an answer that nothing will use: another one came first, as on the
// terminal of the run, or the question is not asked any more.
func (s *sentCommand) withdrawAnswer(ctx context.Context, asked *runstate.Question) error {
	q, err := s.j.question(ctx, s.run, func(q *runstate.Question) bool { return q.Task == asked.Task && q.Key == asked.Key })
	if err != nil && !errors.Is(err, ErrNoQuestion) {
		return err
	}
	var why error
	switch {
	case err != nil:
		why = errChanged
	case q.Answer != nil && q.Answer.Command != s.n: // or it is this one, and taken
		why = &AnsweredError{q.Answer.By, q.Answer.Time}
	case q.Ended:
		why = whyEnded(q)
	default:
		return nil
	}
	ended, err := s.j.store.commands.end(ctx, s.n, why.Error())
	if err == nil && ended {
		err = fmt.Errorf("%w: %w", ErrRefused, why)
	}
	return s.j.fail("write", err)
}

// encodeAnswer returns the line of an answer to a question of a run.
func encodeAnswer(v *vault, run string, a *record.Answer) ([]byte, error) {
	line, err := (&encoder{run: run, vault: v}).answer(a)
	if err != nil {
		return nil, err
	}
	return json.Marshal(line)
}
