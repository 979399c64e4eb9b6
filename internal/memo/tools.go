package memo

import (
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A Call is what is recorded of one call of a tool, or of the output files of a session.
type Call struct {
	Begun  bool
	Asked  bool              // a person was asked whether it may be made
	Result *record.AgentCall // nil if there is none, or if the call has changed a workspace that a later conversation does not have
	Files  *record.AgentCall // likewise
}

// Call returns what is recorded of a session.
func (m *Memo) Call(session string) (c Call) {
	if m != nil && m.calls[session] != nil {
		c = *m.calls[session]
	}
	return c
}

// call returns what is recorded of a session, which it adds if it is new.
func (m *Memo) call(session string) *Call {
	c := m.calls[session]
	if c == nil {
		c = &Call{}
		m.calls[session] = c
	}
	return c
}

// A Workspace is what is recorded of the workspace of a conversation.
type Workspace struct {
	Folder string
	Files  record.Key // of all of its files after Last, as the entries have it
	Last   string     // the last call that may have changed it; empty if none has ended

	// Place is where the process that made that call had its workspaces; zero if that is not known.
	Place record.WorkspacePlace

	open     map[string]bool // calls that may be changing it: they began and have no end
	measured []string        // all calls that were followed by a measurement
}

// IsChanging reports whether a call that was interrupted may still be changing the workspace.
func (w *Workspace) IsChanging() bool { return len(w.open) > 0 }

// Workspace returns what is recorded of the workspace of an attempt at a task, or of a child of it; nil if nothing is.
func (m *Memo) Workspace(id task.ID, child string) *Workspace {
	t := m.Task(id)
	if t == nil {
		return nil
	}
	return t.workspaces[child]
}

// workspace returns what is recorded of the workspace of a session, which it adds if it is new.
func (t *Task) workspace(session string) *Workspace {
	child := record.ChildOf(session)
	w := t.workspaces[child]
	if w == nil {
		if t.workspaces == nil {
			t.workspaces = map[string]*Workspace{}
		}
		w = &Workspace{open: map[string]bool{}}
		t.workspaces[child] = w
	}
	return w
}

// dropWorkspace begins another conversation. What calls of the one before returned does not count any more if they may
// have changed its workspace.
func (m *Memo) dropWorkspace(t *Task, child string) {
	w := t.workspaces[child]
	if w == nil {
		return
	}
	for _, call := range w.measured {
		c := m.call(call)
		c.Result, c.Files = nil, nil
	}
	delete(t.workspaces, child)
}

// toolCall adds a call of a tool that is about to begin.
func (m *Memo) toolCall(c *record.CallStart) {
	m.call(c.Session).Begun = true
	m.spent.Spend(c)
	if c.Effect == string(tool.Workspace) {
		m.task(c.Task).workspace(c.Session).open[c.Session] = true
	}
}

// measured adds what the end of a call, or the files that it returned, say about the workspace.
func (m *Memo) measured(x *record.AgentCall) {
	t := m.task(x.Task)
	if w := t.workspaces[record.ChildOf(x.Session)]; w != nil {
		delete(w.open, x.Session)
	}
	if x.Folder == "" && x.Keys.Files == (record.Key{}) {
		return
	}
	w := t.workspace(x.Session)
	w.measured = append(w.measured, x.Session)
	if x.Keys.Files != (record.Key{}) { // else files were passed to the call
		w.Folder, w.Files, w.Last = x.Folder, x.Keys.Files, x.Session
		if n := len(m.State.Begins); n > 0 {
			w.Place = m.State.Begins[n-1].Workspaces
		}
	}
}
