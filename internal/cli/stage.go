package cli

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/internal/specfile"
)

// stage says who answers the model calls: the endpoints, or a script.
type stage struct {
	offline bool
	script  string
	alone   bool   // --script alone asks for both
	answers string // once it is known: the digest of the script, none without one; empty if models answer
}

func (s *stage) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&s.offline, "offline", false, "answer from a script in this process: no key, no network")
	f.StringVar(&s.script, "script", "", "with --offline: answer from `FILE` (default: the spec's offline:)")
}

func (s *stage) check(cmd *cobra.Command) error {
	switch {
	case s.script != "" && !s.offline && (!s.alone || cmd.Flags().Changed("offline")):
		return usageError("--script needs --offline")
	case cmd.Flags().Changed("script") && s.script == "":
		return usageError("--script is empty: name a file")
	}
	return nil
}

// scriptOf is the script that answers, if one does.
func (s *stage) scriptOf(file *specfile.File) string {
	switch {
	case !s.offline:
		return ""
	case s.script != "":
		return s.script
	}
	return file.Offline
}

// readScript reads a script. What keeps the file itself from being read is said
// of name, which is how the user named it. The digest is of what it says.
func readScript(ctx context.Context, name, path string) (script *scripted.Script, digest string, err error) {
	if err := checkReadable(path); err != nil {
		return nil, "", &fault{kind: kindIO, err: fmt.Errorf("%s: %w", name, err)}
	}
	script, err = await(ctx, func() (*scripted.Script, error) { return scripted.ReadFile(path) })
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
	return nil, "", &fault{kind: kindIO, err: fmt.Errorf("%s: %w", name, err)}
}

// digestOf returns the SHA-256 of what a script says, in hexadecimal digits. Where
// in the file it says so, and what comments say, does not count.
func digestOf(script *scripted.Script) (string, error) {
	said := scripted.Script{Models: script.Models, Replies: slices.Clone(script.Replies)}
	for i := range said.Replies {
		said.Replies[i].At = scripted.Place{}
	}
	text, err := json.Marshal(said)
	return fmt.Sprintf("%x", sha256.Sum256(text)), err
}

// scriptChange says why answers of an earlier run cannot be used: a script is
// part of the version of the agents that it answers for. It is empty if the same
// script, or a model, answers as before.
func (s *stage) scriptChange(was *invocation, file *specfile.File) string {
	path := s.scriptOf(file)
	switch {
	case was.Offline && was.Answers == "", s.offline == was.Offline && s.answers == was.Answers:
		return ""
	case !s.offline:
		return "models answer instead of a script"
	case !was.Offline && path == "":
		return "built-in answers replace those of the models"
	case !was.Offline:
		return cleanLine(path) + " answers instead of the models"
	case path == "":
		return "no script answers any more"
	case s.script != was.Script:
		return cleanLine(path) + " is another script than before"
	}
	return cleanLine(path) + " has changed since"
}

// sign makes the script part of the version of whoever it answers for, so that
// its answers are never taken for those of a model or of another script.
func (s *stage) sign(file *specfile.File) {
	suffix := " scripted/" + s.answers
	for i := range file.Agents {
		file.Agents[i].Member.Version += suffix
	}
	if file.Coordinator != nil {
		file.Coordinator.Version += suffix
	}
}

// connector returns what connects the agents: to their endpoints, or to a script.
func (a *app) connector(ctx context.Context, s *stage, file *specfile.File, rec *recording) (*connector, error) {
	c := &connector{lookup: a.lookup, log: a.log, rec: rec, limits: a.limits}
	for base, l := range file.Limits {
		a.limits.Set(base, l)
	}
	if !s.offline {
		return c, nil
	}
	var script *scripted.Script
	s.answers = "none"
	if path := s.scriptOf(file); path != "" {
		var err error
		name := "--script " + path
		if s.script == "" {
			name = "offline: " + file.OfflineAsWritten()
		}
		if script, s.answers, err = readScript(ctx, name, path); err != nil {
			return nil, err
		}
		if file.Goal == nil { // whose tasks nobody knows yet
			c.strays = strays(script, file.Tasks)
		}
	}
	s.sign(file)
	var err error
	if c.server, err = scripted.Start(script, scripted.Options{}); err != nil {
		return nil, err
	}
	return c, nil
}
