package records

import (
	"context"
	"strings"
	"sync"

	"github.com/runteam/runteam/internal/promptview"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A Conversation collects the prompts of a run for --include-messages, as the caller may see them.
// A nil *Conversation collects nothing.
type Conversation struct {
	next record.Recorder // writes the trace; nil without one

	mu      sync.Mutex
	prompts map[task.ID][]sentPrompt
}

// sentPrompt is one prompt to an agent, without its system prompt.
type sentPrompt struct{ agent, text string }

// record collects a prompt before it is sent.
func (c *Conversation) record(ctx context.Context, r record.Prompt) error {
	if c.next != nil {
		if err := c.next(ctx, r); err != nil {
			return err
		}
	}
	if r.Prompt == nil {
		return nil // context was withheld, so there is no prompt
	}
	at := r.Prompt.Receipt
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.prompts == nil {
		c.prompts = map[task.ID][]sentPrompt{}
	}
	c.prompts[at.Task] = append(c.prompts[at.Task], sentPrompt{at.Agent, visibleText(r.Prompt)})
	return nil
}

// visibleText returns the text of a prompt with a mark for each range that is withheld from the
// viewer.
func visibleText(p *promptview.Shown) string {
	var b strings.Builder
	for i := range p.Text {
		piece := &p.Text[i]
		if !piece.Withheld {
			b.WriteString(piece.Words)
			continue
		}
		s := &p.Receipt.Sources[piece.Source]
		level := s.Classification
		if s.Decision != nil {
			level = level.Join(s.Decision.Before)
		}
		b.WriteString("[withheld: " + level.String() + "]")
	}
	return b.String()
}

// Recorder returns the recorder of a run's prompts: the conversation, which passes them on to next,
// or next alone.
func (c *Conversation) Recorder(next record.Recorder) record.Recorder {
	if c == nil {
		return next
	}
	c.next = next
	return c.record
}

// Attach adds to each task of a result its messages: the prompts to its agent and, if it completed,
// the result.
func (c *Conversation) Attach(res *engine.Result) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range res.Tasks {
		t := &res.Tasks[i]
		t.Messages = []llm.Message{}
		for _, p := range c.prompts[t.ID] {
			if p.agent == t.Assignee {
				t.Messages = append(t.Messages, llm.Message{Role: llm.User, Text: p.text})
			}
		}
		if t.Status == task.Completed {
			t.Messages = append(t.Messages, llm.Message{Role: llm.Assistant, Text: t.Result})
		}
	}
}
