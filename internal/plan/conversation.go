package plan

import (
	"fmt"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/task"
)

// A ConversationText is a text of an earlier turn of a session: what the person said, or the answer.
type ConversationText struct {
	Turn     int                // from 1
	From     string             // user, or who answered
	Envelope *envelope.Envelope // of the run of that turn; nil if it is not readable any more
}

// IsAnswer reports whether the text is the answer of its turn.
func (c *ConversationText) IsAnswer() bool { return c.From != handoff.User }

// Name names the text among those of its session, such as turn 2 or answer 2.
func (c *ConversationText) Name() string {
	if c.IsAnswer() {
		return fmt.Sprintf("answer %d", c.Turn)
	}
	return fmt.Sprintf("turn %d", c.Turn)
}

// Offer offers the text to whoever answers a later turn, who does without it if it is withheld.
func (c *ConversationText) Offer() gate.Offer {
	return gate.Offer{Source: gate.Source{Kind: handoff.Conversation, Name: c.Name()}, Title: c.Name(), Assignee: c.From, Envelope: c.Envelope, Optional: true}
}

// checkConversation reports a conversation of which it is not clear who continues it.
func (c *checker) checkConversation() {
	if o := &c.options; len(o.Conversation) > 0 && o.Answer == nil && len(c.specs) > 1 {
		c.at("tasks").report(fmt.Sprintf("a turn of a session has one task or a goal, and there are %d tasks", len(c.specs)), "send the turn through the session", task.ErrInvalid)
	}
}
