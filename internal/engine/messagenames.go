package engine

import (
	"sync"

	"github.com/runteam/runteam/internal/mailbox"
)

// messageNames gives the messages of a run the names that its journal has for them. Those of a bus are of no use
// there: a process that resumes the run has another bus.
type messageNames struct {
	mu    sync.Mutex // guards the rest
	count int        // the highest number in a name

	// earlier has the names of messages that were sent to the bus of a program before the run began. Another run
	// may have named them differently.
	earlier map[mailbox.ID]string
}

// next returns the name of a message that is sent next.
func (n *messageNames) next() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count++
	return mailbox.Numbered(n.count)
}

// skip leaves out the numbers up to this one.
func (n *messageNames) skip(number int) { n.count = max(n.count, number) }

// adopt names a message to which the run has given no name, and reports whether it is the first call for this one.
func (n *messageNames) adopt(msg *mailbox.Message) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.earlier[msg.ID] != "" {
		return false
	}
	if n.earlier == nil {
		n.earlier = map[mailbox.ID]string{}
	}
	n.count++
	msg.Name = mailbox.Numbered(n.count)
	n.earlier[msg.ID] = msg.Name
	return true
}

// of returns the name that adopt gave a message; empty if it gave none.
func (n *messageNames) of(msg mailbox.Message) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.earlier[msg.ID]
}
