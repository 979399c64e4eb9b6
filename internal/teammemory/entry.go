package teammemory

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// MaxKey is the most characters that a key has.
const MaxKey = 200

// maxCount bounds turns and places that come from outside, so that there is
// room to count on.
const maxCount = math.MaxInt / 2

// The conditions that this package reports in addition to those of package task.
var (
	ErrInvalid  = errors.New("invalid entry")
	ErrForeign  = errors.New("written in another's name")
	ErrNoMemory = errors.New("handle of no memory")
	ErrSnapshot = errors.New("unreadable snapshot")
)

// An Entry is one thing that the team knows: an envelope with a place. It is
// the result of a task, or else a note.
//
// No format, log or JSON of an Entry shows what its envelope holds; the form
// in which it is stored is [Entry.Record].
type Entry struct {
	Agent    string             // who wrote it: an agent, or [handoff.User]; always the envelope's producer
	Key      string             // one clean line, unique for the agent
	Task     task.ID            // whose result it is; empty for a note
	Envelope *envelope.Envelope // what is known, for the gate to open
	Turn     int                // when it was written, in completed tasks
	TTLTurns int                // for how many turns it can be read; zero means without end
	Seq      int                // its place among all entries, from 1
}

// FullKey returns "<agent>/<key>". No agent has a slash in its name, so the
// first one separates, whatever the key is.
func (e Entry) FullKey() string { return e.Agent + "/" + e.Key }

const resultPrefix, resultSuffix = "task:", ":result"

// ResultKey returns the key of a task's result, "task:<id>:result". No note
// can have a key of this form.
func ResultKey(id task.ID) string { return resultPrefix + string(id) + resultSuffix }

// resultOf returns the task whose result has this key.
func resultOf(key string) (id task.ID, ok bool) {
	rest, ok := strings.CutPrefix(key, resultPrefix)
	if !ok {
		return "", false
	}
	rest, ok = strings.CutSuffix(rest, resultSuffix)
	return task.ID(rest), ok
}

// subject names an entry in an error, also one whose key is no key.
func (e *Entry) subject() string { return Excerpt(e.FullKey()) }

// expired reports whether the entry's turns are over at turn now.
func (e *Entry) expired(now int) bool { return e.TTLTurns > 0 && now-e.Turn >= e.TTLTurns }

// check validates every entry that is written, read from a store or restored.
func (e *Entry) check() error {
	if err := checkAgent(e.Agent); err != nil {
		return fmt.Errorf("%w: agent: %w", ErrInvalid, err)
	}
	if err := checkKey(e.Key); err != nil {
		return fmt.Errorf("%w: key: %w", ErrInvalid, err)
	}
	switch {
	case e.Envelope == nil:
		return fmt.Errorf("%w: no envelope", ErrInvalid)
	case !e.isOf(e.Envelope.Producer()):
		return fmt.Errorf("%w: %w: the envelope is from %q", ErrInvalid, ErrForeign, e.Envelope.Producer())
	case e.Turn < 0 || e.Turn > maxCount:
		return fmt.Errorf("%w: turn %d: turns count from 0 to %d", ErrInvalid, e.Turn, maxCount)
	case e.Seq < 0 || e.Seq > maxCount:
		return fmt.Errorf("%w: place %d: places count from 1 to %d", ErrInvalid, e.Seq, maxCount)
	case e.TTLTurns < 0:
		return fmt.Errorf("%w: %d turns to live: write 0 for no end", ErrInvalid, e.TTLTurns)
	}
	return e.checkTask()
}

// isOf reports whether what a producer made may be under the name of the agent: its own, or the result of a
// conversation that the agent transferred.
func (e *Entry) isOf(producer string) bool {
	return producer == e.Agent || e.Task != "" && naming.IsChain(producer) && naming.First(producer) == e.Agent
}

// checkTask holds that the key, the entry and the envelope speak of one task.
func (e *Entry) checkTask() error {
	id, ok := resultOf(e.Key)
	switch {
	case ok && e.Task == "":
		return fmt.Errorf("%w: keys of the form %q are for results: choose another", ErrInvalid, ResultKey("<id>"))
	case e.Task != "" && (!ok || id != e.Task):
		return fmt.Errorf("%w: the result of task %q has the key %q", ErrInvalid, e.Task, ResultKey(e.Task))
	case e.Task != "" && e.Envelope.Task() != e.Task:
		return fmt.Errorf("%w: the envelope is the result of task %q", ErrInvalid, e.Envelope.Task())
	}
	return nil
}

func checkAgent(name string) error {
	if name == handoff.User {
		return nil
	}
	return naming.CheckName(name)
}

func checkKey(key string) error {
	switch {
	case key == "":
		return errors.New("it is empty")
	case len(key) > MaxKey && utf8.RuneCountInString(key) > MaxKey:
		return fmt.Errorf("%d characters, more than %d", utf8.RuneCountInString(key), MaxKey)
	case strings.TrimSpace(key) != key:
		return errors.New("it begins or ends with a blank")
	}
	return naming.CheckLine(key)
}
