package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/task"
)

// A mark says that a row has lines about a task, so that the rows of one task are found
// without reading all. It is a hash of the task's ID, whose last bit says that the task
// completed in the row. Marks only select the rows that are read.
type mark uint64

// wholeRun marks a row that has lines about the run as a whole.
const wholeRun mark = 0

// questions marks a row that has a question or an answer of a person. No hash of a task has
// this value.
const questions mark = 4

// The parameters of FNV-1a in 64 bits.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// markOf returns the mark of a task: the FNV-1a of its ID. Package hash/fnv would allocate.
func markOf(id task.ID, completed bool) mark {
	m := mark(fnvOffset)
	for i := range len(id) {
		m = (m ^ mark(id[i])) * fnvPrime
	}
	m = m&^1 | 2 // never wholeRun
	if completed {
		m |= 1
	}
	return m
}

// appendMarks adds the marks of an entry to a list.
func appendMarks(list []mark, e *record.Entry) []mark {
	add := func(id task.ID) {
		if id != "" {
			list = append(list, markOf(id, false))
		}
	}
	switch {
	case e.Event != nil:
		if len(e.Event.Plan) > 0 {
			list = append(list, wholeRun)
		}
		if e.Event.Type == event.TaskComplete {
			return append(list, markOf(e.Event.Task, true))
		}
		add(e.Event.Task)
	case e.Record != nil:
		for i := range e.Record.Handoffs {
			add(e.Record.Handoffs[i].Task)
		}
		if e.Record.Prompt != nil {
			add(e.Record.Prompt.Receipt.Task)
		}
	case e.Asked != nil:
		add(e.Asked.Task)
	case e.Begun != nil:
		add(record.TaskOf(e.Begun.Session))
	case e.Exchange != nil:
		add(e.Exchange.Task)
	case e.Rejected != nil:
		add(e.Rejected.Task)
	case e.Turn != nil:
		add(e.Turn.Task)
	case e.ToolCall != nil:
		add(e.ToolCall.Task)
	case e.ToolResult != nil:
		add(e.ToolResult.Task)
	case e.Question != nil:
		list = append(list, questions, markOf(e.Question.Task, false))
	case e.Answer != nil:
		list = append(list, questions, markOf(e.Answer.Task, false))
	case e.Command != nil:
		add(e.Command.Task)
	case e.Sent != nil: // the prompts with the message have marks
	default:
		list = append(list, wholeRun)
	}
	return list
}

// packMarks returns the stored form of marks: sorted, each once.
func packMarks(list []mark) []byte {
	slices.Sort(list)
	list = slices.Compact(list)
	out := make([]byte, 0, 8*len(list))
	for _, m := range list {
		out = binary.BigEndian.AppendUint64(out, uint64(m))
	}
	return out
}

// markedParts returns the parts of a row (see [bundle]) behind its marks: two counts of
// zero, with which no parts begin, the number of marks, and 8 bytes for each. There they
// need neither a page nor an index.
func markedParts(marks, parts []byte) []byte {
	out := binary.AppendUvarint([]byte{0, 0}, uint64(len(marks)/8))
	return append(append(out, marks...), parts...)
}

// splitMarks returns the marks and the parts of a row, which may have been written without
// marks.
func splitMarks(stored []byte) (marks, parts []byte, marked bool, err error) {
	rest, marked := bytes.CutPrefix(stored, []byte{0, 0})
	if !marked {
		return nil, stored, false, nil
	}
	count, n := binary.Uvarint(rest)
	if n <= 0 || count > uint64(len(rest)-n)/8 {
		return nil, nil, false, errRow
	}
	return rest[n : n+8*int(count)], rest[n+8*int(count):], true, nil
}

// A markedRow is the number of a row and its marks.
type markedRow struct {
	n      int64
	marks  []byte
	marked bool // the row was written with marks
}

// each calls f with each mark.
func (r *markedRow) each(f func(m mark)) {
	for rest := r.marks; len(rest) >= 8; rest = rest[8:] {
		f(mark(binary.BigEndian.Uint64(rest)))
	}
}

// about reports whether a row may have lines about one of these tasks or the whole run.
func (r *markedRow) about(tasks ...mark) (found bool) {
	r.each(func(m mark) { found = found || m == wholeRun || slices.Contains(tasks, m&^1) })
	return found || !r.marked
}

// TraceTask returns the trace of one task of a run, as [Journal.Trace] returns that of all;
// run is named as for [Journal.Find], and name is a title, a key or an ID. If the task was
// known when the run began, only rows about it are read; see [trace.ReadOptions].Task.
func (a *archive) TraceTask(ctx context.Context, run, name string) (*trace.Trace, error) {
	t, _, err := a.readTask(ctx, run, name, false)
	return t, err
}

// LoadTask returns what [Journal.TraceTask] and [Journal.Load] return. If the task was known
// when the run began, the log of the history is only about this task, no payload of another task is decrypted, and
// lists of the tasks of the run have of others only the first.
func (a *archive) LoadTask(ctx context.Context, run, name string) (*trace.Trace, *Stored, error) {
	return a.readTask(ctx, run, name, true)
}

// readTask reads one task of a run, with or without its history.
func (a *archive) readTask(ctx context.Context, run, name string, history bool) (*trace.Trace, *Stored, error) {
	r, err := a.find(ctx, run)
	if err != nil {
		return nil, nil, err
	}
	rows, err := a.store.marked(ctx, r.n)
	if err != nil {
		return nil, nil, a.fail("read", err)
	}
	var d decoder
	var about mark             // of the task
	var tasks map[mark]task.ID // by the marks that say that they completed; nil if all rows are read
	listed := func(t *trace.Trace, only *trace.Task) {
		if only == nil { // a step of the coordinator, or a task that was planned or added later
			return
		}
		about, tasks = markOf(only.ID, false), make(map[mark]task.ID, len(t.Spec))
		for i := range t.Spec {
			id := t.Spec[i].ID
			tasks[markOf(id, true)] = id
		}
		if history {
			d.only, d.lean = []task.ID{only.ID}, true
		}
	}
	t, err := a.trace(r, &d, trace.ReadOptions{Task: name, Listed: listed}, func(of *traceReading) error {
		for i := range rows {
			if tasks != nil && !rows[i].about(about) {
				rows[i].completed(tasks, of.in)
				continue
			}
			l, err := a.store.batchRow(ctx, rows[i].n, true)
			if err != nil {
				return err
			}
			for line := range bytes.Lines(l.text) {
				if err := of.in.Line(line); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return t, d.stored, err
}

// completed tells the reader of a trace which tasks completed in a row that is skipped.
func (r *markedRow) completed(tasks map[mark]task.ID, in *trace.Reader) {
	r.each(func(m mark) {
		if id, known := tasks[m]; known {
			in.Completed(id)
		}
	})
}

// loadTasks loads some tasks of a run: the log of the history is only about these, and no
// payload of another task is decrypted.
func (a *archive) loadTasks(ctx context.Context, r row, ids ...task.ID) (*Stored, error) {
	marks := make([]mark, len(ids))
	for i, id := range ids {
		marks[i] = markOf(id, false)
	}
	d := &decoder{vault: a.vault, run: r.id, stored: &Stored{History: record.History{Mask: a.vault.mask}}, only: ids}
	if err := a.decodeMarked(ctx, r, d, func(m *markedRow) bool { return m.about(marks...) }); err != nil {
		return nil, err
	}
	return d.stored, nil
}

// decodeMarked decodes the rows of a run that have marks which count.
func (a *archive) decodeMarked(ctx context.Context, r row, d *decoder, counts func(*markedRow) bool) error {
	rows, err := a.store.marked(ctx, r.n)
	for i := 0; err == nil && i < len(rows); i++ {
		if !counts(&rows[i]) {
			continue
		}
		var l *batchRow
		if l, err = a.store.batchRow(ctx, rows[i].n, false); err == nil {
			var lines []historyLine
			lines, err = d.row(l)
			for i := range lines {
				d.add(&lines[i])
			}
		}
	}
	if err != nil {
		return a.fail("read", err)
	}
	return nil
}
