package engine

import (
	"reflect"
	"sync"

	"github.com/runteam/runteam/task"
)

// journals are the journals that runs of this process write to. A journal keeps
// one run, and two at the same time would mix their entries.
var journals journalClaims

type journalClaims struct {
	mu   sync.Mutex // guards used
	used map[Journal]bool
}

// claim takes a journal for a run, or returns why the run cannot have it.
func (c *journalClaims) claim(j Journal) error {
	if j == nil || !reflect.ValueOf(j).Comparable() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used[j] {
		return task.Problems{{Pointer: "/journal", Message: "another run writes to this journal", Hint: "begin a run of the journal for each", Err: task.ErrInvalid}}
	}
	if c.used == nil {
		c.used = map[Journal]bool{}
	}
	c.used[j] = true
	return nil
}

// release gives a journal back.
func (c *journalClaims) release(j Journal) {
	if j == nil || !reflect.ValueOf(j).Comparable() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.used, j)
}
