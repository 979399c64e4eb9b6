package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// ErrFormat reports a file that is no trace, or one that this version does not
// read.
var ErrFormat = errors.New("not a trace that can be read")

// A FormatError says which line of a trace is wrong, and why. It wraps
// [ErrFormat].
type FormatError struct {
	Line   int // from 1
	Reason string
}

func (e *FormatError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// Unwrap returns [ErrFormat].
func (e *FormatError) Unwrap() error { return ErrFormat }

// ErrKind is what [ReadOptions].Other returns for a kind that it does not know either.
var ErrKind = errors.New("unknown kind of line")

// ReadOptions say what else the lines of a trace may be. The zero value is
// that nothing else is.
type ReadOptions struct {
	// Other takes each line of a kind that no trace has (see [Encoder.Line]), in
	// the order of the lines; it may keep the value. Its error ends the reading
	// and is wrapped in what ReadWith returns, with the number of the line;
	// ErrKind makes that a [*FormatError]. Nil takes none.
	Other func(kind string, value json.RawMessage) error

	// Prompt takes each prompt once the lines of other kinds that follow it are
	// read, and may fill in pieces that stand in those. Nil takes none.
	Prompt func(p *Prompt)

	// Task, if not empty, is a title, a key or an id, as for [Trace.Find]. If the
	// head of the trace has such a task, lines that are about others are left out
	// without looking at them, but for when those tasks completed. The result is
	// then empty. A partial trace has all that [Trace.Prompts], [Trace.Held] and
	// [Trace.Absent] say of this task.
	Task string

	// Head, if not nil, is called once the first line is read, with what it says of
	// the run, and with the task that is read alone; nil if all are.
	Head func(t *Trace, only *Task)

	// Finder, if not nil, looks at every prompt and result while they are read,
	// and their words are not kept.
	Finder *Finder
}

// Read reads a trace. It is strict: what it does not know is an error, a
// [*FormatError], since a record that is read in part tells a wrong story.
// Only a last line that was cut off, as by a crash, is left out and said. It
// does not verify the chain of decisions, which package audit does.
func Read(r io.Reader) (*Trace, error) { return ReadWith(r, ReadOptions{}) }

// ReadWith reads a trace among whose lines may be others. Several processes may
// have written it, each going on where the one before came to.
func ReadWith(r io.Reader, o ReadOptions) (*Trace, error) {
	in, lines := NewReader(o), bufio.NewReaderSize(r, 64<<10)
	for {
		text, err := record.ReadLine(lines, nil)
		if errors.Is(err, record.ErrLongLine) {
			return nil, &FormatError{in.at + 1, err.Error()}
		}
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("line %d: %w", in.at+1, err)
		}
		cut := err == io.EOF
		if cut && len(bytes.TrimSpace(text)) == 0 {
			return in.Trace()
		}
		if cut && !json.Valid(text) {
			in.trace.Torn = true
			return in.Trace()
		}
		if err := in.Line(text); err != nil {
			return nil, err
		}
		if cut {
			return in.Trace()
		}
	}
}

// A Reader, which NewReader returns, makes a trace of lines that its user reads
// from where they are stored.
// It is not safe for concurrent use.
type Reader struct {
	o     ReadOptions
	at    int // the line
	trace *Trace
	after []int           // for each prompt, how many events stand before it
	ruled []event.Handoff // as events tell it
	open  int             // the prompt that lines of other kinds may still belong to; -1 is none
	parts bytes.Buffer    // of the result
	only  []byte          // the id of the one task that is read; nil reads all
}

// NewReader returns a Reader that has read no line.
func NewReader(o ReadOptions) *Reader {
	return &Reader{o: o, trace: &Trace{index: map[task.ID]int{}}, open: -1}
}

// Line reads the next line, with or without its line feed. It may keep the text,
// which must not change any more. An error is a [*FormatError], or wraps one of
// [ReadOptions].Other; the trace can then not be read further.
func (r *Reader) Line(text []byte) error {
	r.at++
	err := r.line(text)
	if err == nil {
		return nil
	}
	if other, ok := errors.AsType[*otherError](err); ok {
		return fmt.Errorf("line %d: %w", r.at, other.err)
	}
	return &FormatError{r.at, err.Error()}
}

// Completed says that a task completed in lines that are left out, which stand
// between the line before and the next. It is for a partial trace, see
// [ReadOptions].Task.
func (r *Reader) Completed(id task.ID) {
	r.complete()
	r.trace.learn(Task{ID: id, Status: task.Completed})
	r.trace.Events = append(r.trace.Events, event.Event{Type: event.TaskComplete, Task: id})
}

// Trace returns what the lines said. The Reader must not be used afterwards.
func (r *Reader) Trace() (*Trace, error) {
	if r.at == 0 {
		return nil, &FormatError{1, "the file has no complete line"}
	}
	r.complete()
	return r.finish(), nil
}
