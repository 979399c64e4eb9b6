package engine

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A callPlace is a call of a tool with these arguments at one place of a conversation.
type callPlace struct {
	place string
	key   record.Key // of the name and the arguments, in the form of the history
}

// callIDs are the IDs of the calls of tools in a run, over all its processes. An ID does not
// depend on the arguments themselves, which may be secret: a second call at a place, with
// other arguments, gets the number 2. Those of a task are kept until it has ended.
type callIDs struct {
	mu     sync.Mutex
	byTask map[task.ID]taskCalls
}

// taskCalls are the IDs of the calls of one task.
type taskCalls struct {
	ids   map[callPlace]string
	count map[string]int // of the IDs at a place, by place
}

// newCallIDs returns the IDs that an earlier process gave. It may be nil.
func newCallIDs(m *memo.Memo) *callIDs {
	d := &callIDs{byTask: map[task.ID]taskCalls{}}
	if !m.Is(memo.Own) {
		return d
	}
	for _, t := range m.State.Tasks() {
		for _, s := range t.Tools {
			d.restore(s.Session, s.Key)
		}
	}
	for _, s := range m.State.Sent {
		if s.Key != (record.Key{}) { // journals of earlier versions have none
			d.restore(s.Call, s.Key)
		}
	}
	return d
}

// restore notes the ID that an earlier process gave a call with this key.
func (d *callIDs) restore(id string, key record.Key) {
	place, n := id, 1
	if i := strings.LastIndexByte(id, '-'); i > strings.LastIndexByte(id, '/') {
		if k, err := strconv.Atoi(id[i+1:]); err == nil {
			place, n = id[:i], k
		}
	}
	of := d.task(taskOfCall(id))
	of.ids[callPlace{place, key}], of.count[place] = id, max(n, of.count[place])
}

// taskOfCall returns the task of a call or session: its ID is behind that of the run.
func taskOfCall(id string) task.ID {
	_, at, _ := strings.Cut(id, "/")
	of, _, _ := strings.Cut(at, "/")
	return task.ID(of)
}

// task returns the IDs of the calls of a task.
func (d *callIDs) task(id task.ID) taskCalls {
	of, known := d.byTask[id]
	if !known {
		of = taskCalls{map[callPlace]string{}, map[string]int{}}
		d.byTask[id] = of
	}
	return of
}

// forget removes the IDs of a task that has ended.
func (d *callIDs) forget(id task.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byTask, id)
}

// of returns the ID of a call of a tool. It is the same in every process and every attempt
// that makes the call with the same arguments at the same place of the conversation.
func (d *callIDs) of(x *modelCall, call *llm.ToolCall) (id string, key record.Key) {
	key = argumentsKey(call)
	at := callPlace{fmt.Sprintf("%s/%s%s/%s", x.run.id, x.task.ID, x.part, call.ID), key}
	if m := x.run.memo; m.Is(memo.Own) {
		at.key = m.Mask(key)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	of := d.task(x.task.ID)
	id, known := of.ids[at]
	if !known {
		if id = at.place; of.count[at.place] > 0 {
			id += "-" + strconv.Itoa(of.count[at.place]+1)
		}
		of.ids[at] = id
		of.count[at.place]++
	}
	return id, key
}

// argumentsKey returns the key of what a call passes to a tool.
func argumentsKey(call *llm.ToolCall) record.Key {
	return sha256.Sum256([]byte(call.Name + "\x00" + call.Arguments))
}
