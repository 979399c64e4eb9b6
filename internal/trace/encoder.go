package trace

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/promptview"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// A Batch has encoded lines and decisions of a run, in their order, for [Lines.AddBatch]. An
// [Encoder] adds to it; the zero value is empty.
type Batch struct {
	run   string       // of its first event or prompt
	text  bytes.Buffer // the lines
	parts []part
}

// A part of a batch is decisions, and lines after them.
type part struct {
	decisions audit.Decisions
	end       int // of the lines, in the text of the batch
}

// Reset empties a batch, so that its memory can be used again.
func (b *Batch) Reset() {
	clear(b.parts)
	b.run, b.parts = "", b.parts[:0]
	reset(&b.text)
}

// reset empties a buffer. It does not keep the memory of one giant prompt.
func reset(b *bytes.Buffer) {
	if b.Reset(); b.Cap() > 1<<20 {
		*b = bytes.Buffer{}
	}
}

// add adds a line.
func (b *Batch) add(kind string, value any) error {
	if err := record.AppendLine(&b.text, kind, value); err != nil {
		return err
	}
	if len(b.parts) == 0 {
		b.parts = append(b.parts, part{})
	}
	b.parts[len(b.parts)-1].end = b.text.Len()
	return nil
}

// An Encoder encodes the lines of a trace that do not depend on its chain. It is safe for
// concurrent use, so that many goroutines can encode batches, and the owner of the [Lines]
// only puts them in order. After an error a batch may have some of what was to be added.
type Encoder struct {
	mu     sync.RWMutex // guards titles
	titles map[task.ID]string
}

// NewEncoder returns an encoder that writes the titles of these tasks with their prompts.
func NewEncoder(tasks []Task) *Encoder {
	e := &Encoder{titles: make(map[task.ID]string, len(tasks))}
	for i := range tasks {
		e.titles[tasks[i].ID] = tasks[i].Title
	}
	return e
}

// Event adds an event, without its receipt, which the prompt has, and with its message in the form that only a journal
// can read, if there is one. The encoder remembers the titles of the tasks of a plan.
func (e *Encoder) Event(b *Batch, ev event.Event, hidden json.RawMessage) error {
	e.Learn(ev.Plan)
	ev.Receipt, b.run = nil, cmp.Or(b.run, ev.Run)
	return b.add(record.KindEvent, record.EventLine(ev, hidden))
}

// Record adds the decisions about a prompt, and the prompt. After an error the prompt must
// not be sent: it is not valid UTF-8, or too long for a line.
func (e *Encoder) Record(b *Batch, r record.Prompt) error {
	b.run = cmp.Or(b.run, runOf(r))
	if len(r.Handoffs) > 0 {
		list, err := audit.Encode(r.Handoffs...)
		if err != nil {
			return fmt.Errorf("record decisions: %w", err)
		}
		b.parts = append(b.parts, part{list, b.text.Len()})
	}
	if r.Prompt == nil {
		return nil
	}
	return e.prompt(b, r.Prompt)
}

func (e *Encoder) prompt(b *Batch, s *promptview.Shown) error {
	r := s.Receipt
	p := &Prompt{Shown: *s, Agent: r.Agent, Title: e.title(r.Task), Attempt: attempt(r)}
	if p.Title == "" {
		p.Title = titleIn(s)
	}
	if !isUTF8(s) {
		return fmt.Errorf("the prompt of %q is not valid UTF-8 and cannot be recorded", p.Title)
	}
	lean := *r // the pieces have the ranges
	lean.System, lean.Text = nil, nil
	p.Receipt = &lean
	return b.add(record.KindPrompt, p)
}

// Line adds a line of another kind, for readers with [ReadOptions].Other. The kind is a word
// of small letters that is no kind of a trace; the value is written as JSON.
func (e *Encoder) Line(b *Batch, kind string, value any) error {
	if !ownKind(kind) {
		return fmt.Errorf("a line cannot be of the kind %q: it is a word of small letters, and none of %s", kind, strings.Join(kinds, ", "))
	}
	return b.add(kind, value)
}

// kinds are the kinds of lines of a trace.
var kinds = []string{record.KindTrace, record.KindDecision, record.KindEvent, record.KindPrompt, record.KindPart, record.KindResult}

func ownKind(kind string) bool {
	strange := func(r rune) bool { return r < 'a' || r > 'z' }
	return kind != "" && !strings.ContainsFunc(kind, strange) && !slices.Contains(kinds, kind)
}

// Learn adds tasks whose titles are written with their prompts.
func (e *Encoder) Learn(plan []event.Planned) {
	if len(plan) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range plan {
		e.titles[plan[i].Task] = plan[i].Title
	}
}

func (e *Encoder) title(id task.ID) string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.titles[id]
}

// isUTF8 reports whether JSON can represent the words of a prompt.
func isUTF8(s *promptview.Shown) bool {
	for _, pieces := range [...][]promptview.Piece{s.System, s.Text} {
		for i := range pieces {
			if !utf8.ValidString(pieces[i].Words) {
				return false
			}
		}
	}
	return true
}

// titleIn returns the title in the text of a prompt, if it may be seen.
func titleIn(s *promptview.Shown) (title string) {
	for i := range s.Text {
		if s.Text[i].Part == brief.PartTitle {
			title += s.Text[i].Words
		}
	}
	return title
}
