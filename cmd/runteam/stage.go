package main

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/llm/scripted"
	"github.com/runteam/runteam/spec"
)

// stage says who answers the model calls: the endpoints, or a script.
type stage struct {
	offline bool
	script  string
}

func (s *stage) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&s.offline, "offline", false, "answer from a script in this process: no key, no network")
	f.StringVar(&s.script, "script", "", "with --offline: answer from `FILE` (default: the spec's offline:)")
}

func (s *stage) check(cmd *cobra.Command) error {
	switch {
	case s.script != "" && !s.offline:
		return usageError("--script needs --offline")
	case cmd.Flags().Changed("script") && s.script == "":
		return usageError("--script is empty: name a file")
	}
	return nil
}

// scriptOf is the script that answers, if one does.
func (s *stage) scriptOf(file *spec.File) string {
	switch {
	case !s.offline:
		return ""
	case s.script != "":
		return s.script
	}
	return file.Offline
}

// readScript reads a script. What keeps the file itself from being read is said
// of name, which is how the user named it.
func readScript(name, path string) (*scripted.Script, error) {
	script, err := scripted.ReadFile(path)
	at, ok := errors.AsType[*fs.PathError](err)
	if !ok {
		return script, err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = errors.New("there is no such file")
	case errors.Is(err, syscall.EISDIR):
		err = errors.New("it is a folder: name a file")
	default:
		err = at.Err
	}
	return nil, &fault{kind: kindIO, err: fmt.Errorf("%s: %w", name, err)}
}

// connector returns what connects the agents: to their endpoints, or to a script.
func (a *app) connector(s *stage, file *spec.File, rec *recording) (*connector, error) {
	c := &connector{lookup: a.lookup, log: a.log, rec: rec}
	if !s.offline {
		return c, nil
	}
	var script *scripted.Script
	if path := s.scriptOf(file); path != "" {
		var err error
		name := "--script " + path
		if s.script == "" {
			name = "offline: " + path
		}
		if script, err = readScript(name, path); err != nil {
			return nil, err
		}
		if file.Goal == nil { // whose tasks nobody knows yet
			c.strays = strays(script, file.Tasks)
		}
	}
	var err error
	if c.server, err = scripted.Start(script, scripted.Options{}); err != nil {
		return nil, err
	}
	return c, nil
}
