package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/task"
)

// ErrFormat reports a file that is no trace of a version that this program reads.
var ErrFormat = errors.New("not a trace that can be read")

// A FormatError names a line of a trace that is wrong, and why. It wraps [ErrFormat].
type FormatError struct {
	Line   int // from 1
	Reason string
}

func (e *FormatError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// Unwrap returns [ErrFormat].
func (e *FormatError) Unwrap() error { return ErrFormat }

// ErrKind is what [ReadOptions].Other returns for an unknown kind.
var ErrKind = errors.New("unknown kind of line")

// ReadOptions configure the reading of a trace.
type ReadOptions struct {
	// Decode, if not nil, decodes the lines of which Other gets each in their order. An error of one of both ends the
	// reading and is returned with the number of the line; ErrKind is returned as a [*FormatError]. If Other is nil, such
	// lines are refused.
	Decode Decode
	Other  func(l *Line) error

	// Prompt, if not nil, gets each prompt once the lines of other kinds that follow it are
	// read, and may fill in pieces from those.
	Prompt func(p *Prompt)

	// Task, if not empty, is a title, a key or an ID, as for [Trace.Find]. If the run began with
	// such a task, lines about others are skipped, except that those tasks
	// completed, and the result is empty. Such a partial trace has all that [Trace.Prompts],
	// [Trace.Withheld] and [Trace.Absent] return for this task.
	Task string

	// Event, if not nil, gets each event in its place among the lines of other kinds.
	Event func(e *event.Event, hidden json.RawMessage)

	// Listed, if not nil, is called once the tasks of the run are known, with the trace so far,
	// and with the task that is read alone; nil if all are.
	Listed func(t *Trace, only *Task)

	// Finder, if not nil, searches every prompt and result, whose words are then dropped.
	Finder *Finder
}

// Read reads a trace. It is strict: anything unknown is a [*FormatError], since a record that
// is read in part is misleading. Only a last line that was cut off, as by a crash, is ignored
// and reported as Torn. Read does not verify the chain of decisions; package audit does.
func Read(r io.Reader) (*Trace, error) { return ReadWith(r, ReadOptions{}) }

// ReadWith reads a trace with options. Several processes may have written it, each
// continuing it.
func ReadWith(r io.Reader, o ReadOptions) (*Trace, error) {
	in := NewReader(o)
	for text, err := range record.Lines(r) {
		torn := errors.Is(err, record.ErrTorn)
		switch {
		case errors.Is(err, record.ErrLongLine):
			return nil, &FormatError{in.at + 1, err.Error()}
		case err != nil && !torn:
			return nil, fmt.Errorf("line %d: %w", in.at+1, err)
		case torn && len(bytes.TrimSpace(text)) == 0:
			continue
		case torn && !json.Valid(text):
			in.trace.Torn = true
			continue
		}
		if err := in.Line(text); err != nil {
			return nil, err
		}
	}
	return in.Trace()
}

// A Reader makes a trace of lines that the caller passes to it. [NewReader] returns one. It is
// not safe for concurrent use.
type Reader struct {
	o      ReadOptions
	at     int // the line
	trace  *Trace
	events int             // how many there were, with those that were skipped
	starts map[start][]int // the times of each attempt
	ruled  []event.Handoff // decisions of events
	open   int             // the prompt to which lines of other kinds may still belong; -1 is none
	parts  bytes.Buffer    // of the result
	listed bool            // the tasks that the run began with are known
	only   []byte          // the ID of the one task that is read; nil reads all

	hidden record.Hidden
}

// NewReader returns a Reader before its first line.
func NewReader(o ReadOptions) *Reader {
	return &Reader{o: o, trace: &Trace{State: runstate.New(), ends: map[task.ID]period{}}, starts: map[start][]int{}, open: -1, hidden: record.Hidden{}}
}

// Line reads the next line, with or without its line feed. It may keep the text, which must
// not change any more. An error is a [*FormatError], or wraps one of [ReadOptions].Other; the
// Reader must then not be used any more.
func (r *Reader) Line(text []byte) error {
	if r.only != nil && r.unrelated(text) {
		r.at++
		return nil
	}
	return r.Add(Parse(text, r.o.Decode))
}

// Add does what [Reader.Line] does, with a line that is parsed.
func (r *Reader) Add(l *Line) error {
	r.at++
	err := r.add(l)
	if err == nil {
		return nil
	}
	if other, ok := errors.AsType[*otherError](err); ok {
		return fmt.Errorf("line %d: %w", r.at, other.err)
	}
	return &FormatError{r.at, err.Error()}
}

// Began adds that a prefetched prompt of a session was sent, between the last line and the next.
func (r *Reader) Began(session string) {
	r.complete()
	r.started(record.TaskOf(session), record.AttemptOf(session))
}

// Completed adds that a task completed in lines that are skipped, between the last line and
// the next. It is for a partial trace; see [ReadOptions].Task.
func (r *Reader) Completed(id task.ID) {
	r.complete()
	r.trace.State.Apply(&record.Entry{Change: &record.TaskChange{Type: event.TaskComplete, Task: id}})
	r.trace.ended(id, 2*r.events)
	r.events++
}

// Trace returns the trace of the lines. The Reader must not be used afterwards.
func (r *Reader) Trace() (*Trace, error) {
	if r.at == 0 {
		return nil, &FormatError{1, "the file has no complete line"}
	}
	r.complete()
	return r.finish(), nil
}

// Snapshot returns the trace of the lines so far; more may follow. Both share what is in the prompts and events. It has no
// State, which the owner of a history makes of that.
func (r *Reader) Snapshot() (*Trace, error) {
	r.complete()
	now, t := *r, *r.trace
	t.ends = maps.Clone(t.ends)
	t.Prompts, t.Handoffs = slices.Clone(t.Prompts), slices.Clone(t.Handoffs)
	now.trace = &t
	snapshot, err := now.Trace()
	t.State = nil
	return snapshot, err
}
