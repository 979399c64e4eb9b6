package trace

import (
	"fmt"
	"strings"

	"github.com/runteam/runteam/internal/record"
)

// Holders has the number of each later holder of a conversation, from 2, by its session without a turn.
type Holders map[string]int

// Holders returns the later holders of the conversations that were transferred, by their prompts.
func (t *Trace) Holders() Holders {
	list := Holders{}
	for i := range t.Prompts {
		if r := t.Prompts[i].Receipt; r != nil && len(r.Contract.HeldBefore) > 0 {
			session, _, _ := strings.Cut(r.Session, record.TurnPrefix)
			list[session] = len(r.Contract.HeldBefore) + 1
		}
	}
	return list
}

// Part names a part of an attempt, such as "child call_1_1 turn 2" or "holder 2 turn 2". The attempt is
// the beginning of its sessions: the run, the task and the number. The name is empty for the first prompt.
func (h Holders) Part(attempt, part string) string {
	name, end := "", 0
	for strings.HasPrefix(part[end:], record.ChildPrefix) {
		id, _, _ := strings.Cut(part[end+len(record.ChildPrefix):], "/")
		end += len(record.ChildPrefix) + len(id)
		if n := h[attempt+part[:end]]; n > 0 {
			name = fmt.Sprintf("holder %d", n)
		} else {
			name += " child " + id
		}
	}
	return strings.TrimSpace(name + " " + strings.ReplaceAll(strings.Trim(part[end:], "/"), "/", " "))
}
