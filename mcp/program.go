package mcp

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/runteam/runteam/internal/process"
	"github.com/runteam/runteam/internal/workspace"
	"github.com/runteam/runteam/tool"
)

// A program is the running program of a server.
type program struct {
	*process.Process
	folder *workspace.Folder // of a confined program; nil for any other
	stop   sync.Once
}

// isConfined reports whether the program of the server is confined.
func (s *Server) isConfined() bool { return s.Confine != nil && *s.Confine }

// program returns what the tools of the server say about its program; nil if it has none.
func (s *Server) program() *tool.Program {
	if s.Command == "" {
		return nil
	}
	return &tool.Program{Name: fmt.Sprintf("mcp server %q", s.Name), Confined: s.isConfined(), Reason: s.Reason}
}

// checkConfinement returns an error if the program cannot run as the server says.
func (s *Server) checkConfinement() error {
	switch {
	case s.Reason != "" && (s.Confine == nil || *s.Confine):
		return errors.New("Reason is only for a program with Confine false; leave it out, or set Confine to false")
	case !s.isConfined() && len(s.Options.Readable) > 0:
		return errors.New("a program that is not confined can read every file; leave Readable out, or set Confine to true")
	case !s.isConfined():
		return nil
	case !process.Confines():
		return fmt.Errorf("this system cannot confine programs: it lacks %s; set Confine to false to run it with access to files and the network", process.Missing())
	case s.Dir != "":
		return errors.New("a confined program runs in a folder of its own; leave Dir out, or set Confine to false")
	}
	for _, path := range s.Options.Readable {
		if err := process.CheckReadable(path); err != nil {
			return fmt.Errorf("readable: %w", err)
		}
	}
	return nil
}

// start starts the program of the server.
func (s *Server) start() (*program, error) {
	c := &process.Command{Path: s.Command, Args: s.Args, Dir: s.Dir, Env: process.Environment(s.Env), Mask: s.masks()}
	p := &program{}
	if s.isConfined() {
		path, err := exec.LookPath(s.Command)
		if err != nil {
			return nil, err
		}
		if c.Path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		if p.folder, err = workspace.Make("", "runteam-"); err != nil {
			return nil, err
		}
		env := map[string]string{"HOME": p.folder.Name(), "TMPDIR": p.folder.Name()}
		maps.Copy(env, s.Env)
		c.Confine, c.Dir, c.Env, c.Readable = true, p.folder.Name(), process.Environment(env), append([]string{c.Path}, s.Options.Readable...)
	}
	started, err := process.Start(c)
	if err != nil {
		p.removeFolder()
		return nil, err
	}
	p.Process = started
	return p, nil
}

// Stop ends the program with everything that it started, and removes its folder. A second Stop waits
// for the first.
func (p *program) Stop() {
	p.stop.Do(func() {
		p.Process.Stop()
		p.removeFolder()
	})
}

func (p *program) removeFolder() {
	if p.folder != nil {
		_ = p.folder.Remove() // nothing else knows its name
	}
}
