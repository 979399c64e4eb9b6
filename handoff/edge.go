package handoff

import "github.com/runteam/runteam/label"

// An Edge lets an agent send messages to another one while both work. Without an edge no agent can
// send anything to another; the user can send to every agent. An edge grants the pair what is sent
// along it, and nothing else: labels, rules of the policy and redaction apply to a message as to any
// result of its sender.
type Edge struct {
	From string
	To   string

	// Bidirectional says that To may send to From too.
	Bidirectional bool

	// Delegate says that From may also delegate goals to To with the tool delegate_to_agent, and To to
	// From if the edge is bidirectional. The reader pursues the goal as a part of the sender's work, and
	// its answer returns to the sender.
	Delegate bool

	// Files are globs of files, such as src/**, that may be passed with a delegated goal. The sender names some of
	// its workspace, the reader gets those that the gate delivers to it, and what it changes of these files comes
	// back. None are passed without it.
	Files []string

	// Transfer says that From may transfer its conversation to To with the tool transfer_to_NAME, and To
	// to From if the edge is bidirectional. The reader finishes the task in place of From, with what the
	// gate delivers to it of the conversation.
	Transfer bool

	// MaxClassification is the most sensitive level of what may be sent along the edge; nil means that
	// only the clearance of the reader bounds it.
	MaxClassification *label.Classification
}

// Max returns the most sensitive level of what may be sent along the edge.
func (e *Edge) Max() label.Classification {
	if e.MaxClassification != nil {
		return *e.MaxClassification
	}
	return label.Secret
}
