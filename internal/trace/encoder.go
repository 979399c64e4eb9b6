package trace

import (
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

// An Encoder encodes the lines of a trace that do not depend on its chain, each with its line
// feed, for [Lines.AddEncoded]. It is safe for concurrent use, so that many goroutines can
// encode lines, and the owner of the Lines only puts them in order.
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

// Event returns the line of an event, without its receipt, which the prompt has. It remembers
// the titles of the tasks of a plan.
func (e *Encoder) Event(ev event.Event) ([]byte, error) {
	e.learn(ev.Plan)
	ev.Receipt = nil
	return record.EncodeEvent(ev)
}

// Decisions encodes decisions for [Lines.Decisions].
func (e *Encoder) Decisions(list ...event.Handoff) (audit.Decisions, error) {
	encoded, err := audit.Encode(list...)
	if err != nil {
		return nil, fmt.Errorf("record decisions: %w", err)
	}
	return encoded, nil
}

// Prompt returns the line of a prompt. After an error the prompt must not be sent: it is not
// valid UTF-8, or too long for a line.
func (e *Encoder) Prompt(s *promptview.Shown) ([]byte, error) {
	r := s.Receipt
	p := &Prompt{Shown: *s, Agent: r.Agent, Title: e.title(r.Task), Attempt: attempt(r)}
	if p.Title == "" {
		p.Title = titleIn(s)
	}
	if !isUTF8(s) {
		return nil, fmt.Errorf("the prompt of %q is not valid UTF-8 and cannot be recorded", p.Title)
	}
	lean := *r // the pieces have the ranges
	lean.System, lean.Text = nil, nil
	p.Receipt = &lean
	return record.EncodeLine(record.KindPrompt, p)
}

// Line returns a line of another kind, for readers with [ReadOptions].Other. The kind is a
// word of small letters that is no kind of a trace; the value is written as JSON.
func (e *Encoder) Line(kind string, value any) ([]byte, error) {
	if !ownKind(kind) {
		return nil, fmt.Errorf("a line cannot be of the kind %q: it is a word of small letters, and none of %s", kind, strings.Join(kinds, ", "))
	}
	return record.EncodeLine(kind, value)
}

// kinds are the kinds of lines of a trace.
var kinds = []string{record.KindTrace, record.KindDecision, record.KindEvent, record.KindPrompt, record.KindPart, record.KindResult}

func ownKind(kind string) bool {
	strange := func(r rune) bool { return r < 'a' || r > 'z' }
	return kind != "" && !strings.ContainsFunc(kind, strange) && !slices.Contains(kinds, kind)
}

func (e *Encoder) learn(plan []event.Planned) {
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
