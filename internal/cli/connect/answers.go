package connect

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/workdir"
	"github.com/spf13/cobra"
)

// AnswerFlags say whether endpoints or a script answer the model calls.
type AnswerFlags struct {
	Offline              bool
	Script               string
	ScriptImpliesOffline bool   // --script implies --offline
	Digest               string // of the script that answers, set by NewConnector; none for built-in answers; empty if models answer
}

// AddTo adds the flags to a command.
func (s *AnswerFlags) AddTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&s.Offline, "offline", false, "answer from a script in this process: no key, no network")
	f.StringVar(&s.Script, "script", "", "with --offline: answer from `FILE` (default: the spec's offline:)")
}

// Check returns an error if the flags contradict each other.
func (s *AnswerFlags) Check(cmd *cobra.Command) error {
	if s.Script != "" && !s.Offline && (!s.ScriptImpliesOffline || cmd.Flags().Changed("offline")) {
		return exit.Usagef("--script needs --offline")
	}
	return nil
}

// ScriptPath returns the path of the script that answers, or "".
func (s *AnswerFlags) ScriptPath(file *specfile.File) string {
	switch {
	case !s.Offline:
		return ""
	case s.Script != "":
		return s.Script
	}
	return file.Offline
}

// ReadScript reads a script and returns a digest of its contents. Errors about the file use name,
// which is how the user named it.
func ReadScript(ctx context.Context, dir workdir.Dir, name, path string) (script *scripted.Script, digest string, err error) {
	if err := files.CheckReadable(dir, path); err != nil {
		return nil, "", exit.FileError(name, err)
	}
	script, err = files.Await(ctx, func() (*scripted.Script, error) { return scripted.ReadFile(dir, path) })
	if err == nil {
		digest, err = digestOf(script)
	}
	at, ok := errors.AsType[*fs.PathError](err)
	if !ok {
		return script, digest, err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = errors.New("there is no such file")
	case errors.Is(err, syscall.EISDIR):
		err = errors.New("it is a folder: name a file")
	default:
		err = at.Err
	}
	return nil, "", exit.FileError(name, err)
}

// digestOf returns the SHA-256 of the contents of a script in hexadecimal digits. Positions and
// comments do not matter.
func digestOf(script *scripted.Script) (string, error) {
	content := scripted.Script{Models: script.Models, Replies: slices.Clone(script.Replies)}
	for i := range content.Replies {
		content.Replies[i].At = scripted.Place{}
	}
	text, err := json.Marshal(content)
	return fmt.Sprintf("%x", sha256.Sum256(text)), err
}

// ScriptChange says why answers of an earlier run cannot be used: a script is part of the version of
// its agents. It is empty if the same script, or no script, answers as before.
func (s *AnswerFlags) ScriptChange(was *journals.Invocation, file *specfile.File) string {
	path := s.ScriptPath(file)
	switch {
	case was.Offline && was.Answers == "", s.Offline == was.Offline && s.Digest == was.Answers:
		return ""
	case !s.Offline:
		return "models answer instead of a script"
	case !was.Offline && path == "":
		return "built-in answers replace those of the models"
	case !was.Offline:
		return terminal.CleanLine(path) + " answers instead of the models"
	case path == "":
		return "no script answers any more"
	case s.Script != was.Script:
		return terminal.CleanLine(path) + " is another script than before"
	}
	return terminal.CleanLine(path) + " has changed"
}

// sign makes the script part of the version of each agent, so that its answers are never used as
// those of a model or of another script.
func (s *AnswerFlags) sign(file *specfile.File) {
	suffix := " scripted/" + s.Digest
	for i := range file.Agents {
		if file.Agents[i].Process == nil { // the script does not replace commands
			file.Agents[i].Member.Version += suffix
		}
	}
	if file.Coordinator != nil {
		file.Coordinator.Version += suffix
	}
}

// NewConnector returns a connector to the endpoints, or to a script.
func NewConnector(ctx context.Context, con *console.Console, s *AnswerFlags, file *specfile.File, rec *Recording) (*Connector, error) {
	c := &Connector{Lookup: con.LookupEnv, log: con.Log, recording: rec, limits: con.Limits}
	for base, l := range file.Limits {
		con.Limits.Set(base, l)
	}
	if !s.Offline {
		return c, nil
	}
	var script *scripted.Script
	s.Digest = "none"
	if path := s.ScriptPath(file); path != "" {
		var err error
		name := "--script " + path
		if s.Script == "" {
			name = "offline: " + file.OfflineAsWritten()
		}
		if script, s.Digest, err = ReadScript(ctx, con.WorkDir, name, path); err != nil {
			return nil, err
		}
		c.UnusedReplies = unusedReplies(script, file)
	}
	s.sign(file)
	var err error
	if c.Server, err = scripted.Start(script, scripted.Options{}); err != nil {
		return nil, err
	}
	return c, nil
}

// ShowScript makes a plan show that a script answers: its agents have the [plan.ScriptedModel], and no prompt leaves for
// an endpoint. Labels stay as they are, since the clearances of the endpoints apply to such a run too.
func ShowScript(p *engine.Plan) {
	if p.Coordinator != nil {
		showScript(p.Coordinator)
	}
	for i := range p.Agents {
		showScript(&p.Agents[i])
	}
	for i := range p.Tasks {
		p.Tasks[i].LeavesTo, p.Tasks[i].Fallback = "", nil
	}
}

func showScript(a *engine.PlannedAgent) {
	if a.LeavesTo != "" {
		a.Model, a.LeavesTo, a.Fallback = plan.ScriptedModel, "", nil
	}
}
