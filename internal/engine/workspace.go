package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/workspace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/tool"
)

// A workspacePlace says where the workspace of a conversation is, and what it begins with.
type workspacePlace struct {
	parent   string // empty means the folder for temporary files
	prefix   string // of its name
	lasts    bool   // a later process can find it
	inMemory bool
	of       record.WorkspacePlace // of this process; zero if nothing lasts
	err      error                 // why there cannot be one
	given    filetree.Tree
	contents *gate.FolderCache
	limits   workspace.Limits
	words    *redact.Redactor
}

// memoryDir is a tmpfs, for data that must not be written to disk.
const memoryDir = "/dev/shm"

// placeOf returns the place of the workspace of an attempt.
func placeOf(a *attempt) workspacePlace {
	p := workspacePlace{prefix: "runteam-", given: a.given.files(), contents: &a.run.contents, limits: workspaceLimits(a.task), words: a.by.Rules.Words()}
	var of record.Workspaces
	if k, ok := a.run.log.(record.WorkspaceKeeper); ok {
		of = k.Workspaces()
	}
	p.of, p.inMemory = of.Place, a.contract.MaxInput > label.Confidential
	if p.parent, p.lasts = of.Disk, of != (record.Workspaces{}); p.inMemory {
		p.parent = cmp.Or(of.Memory, memoryDir)
	}
	if p.lasts {
		p.prefix = "task-" + workspace.FileName(string(a.task.ID)) + "-"
	}
	if !mayHaveFiles(a.contract.MaxInput) {
		p.err = fmt.Errorf("%v data must not be written to disk, and this system has no in-memory folder", a.contract.MaxInput)
	}
	return p
}

// An attemptFolder is the folder of one attempt, in which its tools work. It has only what
// passed the gate to a tool. It is made for the first call that asks for it, and closed when
// the attempt ends, so that a new attempt begins with a clean one.
type attemptFolder struct {
	*workspace.Folder
	of *conversation
}

// Close removes the folder, or leaves it as the end of the attempt wants it.
func (f attemptFolder) Close() error {
	switch f.of.fate {
	case removed:
		if !f.of.place.lasts {
			return f.Remove()
		}
		f.of.mu.Lock() // until the end of the attempt is durable, another process may need it
		f.of.removable = f.Name()
		f.of.mu.Unlock()
	case keptForUser:
		path, err := f.Name(), error(nil)
		if f.of.place.lasts {
			path, err = f.Keep(f.of.keptName)
		} else {
			err = f.Root.Close()
		}
		f.of.mu.Lock()
		defer f.of.mu.Unlock()
		f.of.keptAt = path
		return err
	}
	return f.Root.Close()
}

// A fate says what happens to a workspace when its attempt ends.
type fate uint8

const (
	removed       fate = iota
	leftForResume      // the run was interrupted
	keptForUser        // the caller wants to see it
)

// workspaceKey is the key of the workspace among what the calls of an attempt share.
type workspaceKey struct{}

// files returns the workspace of the attempt. It does not use the attempt itself: a call that
// was abandoned may outlive it.
func (c *conversation) files() (*os.Root, error) {
	f, err := c.shared.Get(workspaceKey{}, func() (io.Closer, error) { return c.makeFiles() })
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	return f.(attemptFolder).Root, nil
}

// makeFiles makes the workspace.
func (c *conversation) makeFiles() (io.Closer, error) {
	if c.place.err != nil {
		return nil, c.place.err
	}
	f, err := workspace.Make(c.place.parent, c.place.prefix)
	if err != nil {
		return nil, err
	}
	err = errors.Join(f.Mkdir(brief.HistoryDir, 0o755), f.Mkdir(brief.OutputsDir, 0o755), f.Give(c.place.given, c.place.contents.Sum))
	if err == nil {
		err = c.use(f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Remove())
	}
	return attemptFolder{f, c}, nil
}

// use makes a folder the workspace, and writes the steps so far into it.
func (c *conversation) use(f *workspace.Folder) error {
	c.mu.Lock()
	c.folder = f
	c.mu.Unlock()
	c.hasFiles.Store(true)
	return c.writeHistory(f.Root, c.place.words)
}

// mayHaveFiles reports whether data at a level may be in files of this system.
func mayHaveFiles(level label.Classification) bool {
	return level <= label.Confidential || runtime.GOOS == "linux"
}

// readsFiles reports whether the agent can read its workspace.
func (a *attempt) readsFiles() bool {
	return mayHaveFiles(a.contract.MaxInput) && slices.ContainsFunc(a.tools, func(t *tool.Tool) bool {
		return t.ReadsWorkspace && mayReadAll(a.by, a.caps.Agent, t, a.contract.MaxInput) == nil
	})
}

// mayReadAll returns an error if an agent may not pass a whole conversation with this label to
// a tool. The folder history has it, so such a tool gets no workspace.
func mayReadAll(team *plan.Roster, agent string, t *tool.Tool, level label.Classification) error {
	reader := gate.ToolReader(t.Name)
	terms := team.Terms(agent, reader)
	x := terms.Admit(level, t.Accepts, reader)
	switch {
	case x.Withheld() || x.Lowers != nil:
		return fmt.Errorf("workspace: it has the whole conversation, which is %v, and %s may not read all of that", level, reader)
	case !plan.PassesAsText(terms):
		return fmt.Errorf("workspace: it has the whole conversation, and a rule of the policy limits what %s passes to %s", agent, reader)
	}
	return nil
}

// workspaceOf returns the function that gives the tool of a call the workspace. It may outlive
// the attempt.
func (c *toolCall) workspaceOf(a *attempt) func() (*os.Root, error) {
	team, agent, of, returned := a.by, a.caps.Agent, a.conversation, a.returned.level() // the attempt may be another one by the time of the call
	return func() (*os.Root, error) {
		if err := mayReadAll(team, agent, c.tool, c.from.Classification().Join(returned)); err != nil {
			return nil, err
		}
		return of.files()
	}
}

// addStep adds what a turn added to the conversation, in the form that the agent was given, and
// writes it into the workspace, if there is one.
func (a *attempt) addStep(messages []prompt.Message) error {
	a.mu.Lock()
	a.steps = append(a.steps, messages)
	a.mu.Unlock()
	if !a.hasFiles.Load() {
		return nil
	}
	root, err := a.files()
	if err != nil {
		return err
	}
	if err := a.writeHistory(root, a.by.Rules.Words()); err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	return nil
}

// dropStep takes back what was added last.
func (c *conversation) dropStep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = c.steps[:len(c.steps)-1]
	c.written = min(c.written, len(c.steps))
}

// writeHistory writes the steps that are not in the workspace yet. Secrets and personal data
// are redacted as in a log, because any tool that gets the workspace may read them. A call that
// outlives its turn may write the steps at the same time.
func (c *conversation) writeHistory(root *os.Root, words *redact.Redactor) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ; c.written < len(c.steps); c.written++ {
		step, err := redactedStep(words, c.steps[c.written])
		if err != nil {
			return err
		}
		raw, err := json.MarshalIndent(step, "", "  ")
		if err != nil {
			return err
		}
		if err := c.writeOwn(root, brief.HistoryFile(c.written+1), append(raw, '\n')); err != nil {
			return err
		}
		c.steps[c.written] = nil
	}
	return nil
}

// redactedStep returns the messages of a turn without secrets and personal data.
func redactedStep(words *redact.Redactor, of []prompt.Message) ([]prompt.Message, error) {
	step := slices.Clone(of)
	for i := range step {
		m := &step[i]
		var err error
		if m.Text, _, err = words.Text(m.Text); err != nil {
			return nil, err
		}
		m.Calls = slices.Clone(m.Calls)
		for k := range m.Calls {
			c := &m.Calls[k]
			if c.Arguments, _, _, err = words.JSON(context.Background(), c.Arguments, nil); err != nil {
				return nil, err
			}
		}
	}
	return step, nil
}

// writeOwn writes a file of the runtime, which does not count as one of the tools. The caller
// holds c.mu.
func (c *conversation) writeOwn(root *os.Root, name string, text []byte) error {
	if c.sizes == nil {
		c.sizes = map[string]int{}
	}
	c.sizes[name] = len(text)
	return replaceFile(root, name, text)
}

// replaceFile writes a file, in place of whatever a tool has put there: opening a named pipe
// would wait for its reader.
func replaceFile(root *os.Root, name string, text []byte) error {
	if err := root.RemoveAll(name); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
