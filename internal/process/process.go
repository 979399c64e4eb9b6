// Package process runs programs on behalf of agents: with a minimal environment, limits on
// time and output, and cleanup of child processes. On Linux it can confine a program to one
// folder.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"
)

// A Command says what to run.
type Command struct {
	Path string
	Args []string
	Dir  string   // empty means the folder of this process
	Env  []string // the whole environment, as NAME=value; see [Environment]

	// Confine confines the program to Dir and the system's programs. It is an error where
	// [Confines] reports false.
	Confine bool
}

// Environment returns a minimal environment: PATH, HOME, LANG, TMPDIR and SystemRoot of this
// process, and env, which takes precedence. Other variables, such as API keys, are left out.
func Environment(env map[string]string) []string {
	all := map[string]string{}
	for _, name := range []string{"PATH", "HOME", "LANG", "TMPDIR", "SystemRoot"} {
		if value, ok := os.LookupEnv(name); ok {
			all[name] = value
		}
	}
	maps.Copy(all, env)
	var list []string
	for name, value := range all {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// StopTime is how long a program may take to end once its input was closed.
const StopTime = 2 * time.Second

// A Process is a running program.
type Process struct {
	Stdin  io.WriteCloser
	Stdout io.ReadCloser

	cmd    *exec.Cmd
	stderr tail
	exited chan struct{} // closed when the program has ended
	once   sync.Once
}

// Start runs a program whose input and output the caller writes and reads. The caller must
// call Stop.
func Start(c *Command) (*Process, error) {
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stdout, out, err := os.Pipe()
	if err != nil {
		in.Close()
		stdin.Close()
		return nil, err
	}
	p := &Process{Stdin: stdin, Stdout: stdout, cmd: c.command(), exited: make(chan struct{})}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, &p.stderr
	p.cmd.WaitDelay = StopTime // for children that keep the standard error open
	err = c.start(p.cmd)
	in.Close()
	out.Close()
	if err != nil {
		stdin.Close()
		stdout.Close()
		return nil, err
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait()
		killGroup(p.cmd)
	}()
	return p, nil
}

// Stderr returns the end of what the program wrote to its standard error.
func (p *Process) Stderr() string { return p.stderr.String() }

// Stop closes the input of the program, gives it StopTime to end, and then ends it with
// everything that it started. A second Stop waits for the first.
func (p *Process) Stop() {
	p.once.Do(func() {
		p.Stdin.Close()
		select {
		case <-p.exited:
		case <-time.After(StopTime):
			killGroup(p.cmd)
			<-p.exited
		}
		p.Stdout.Close()
	})
}

// A Result is the outcome of Run.
type Result struct {
	Stdout, Stderr []byte
	Cut            bool // there was more output than was kept
	ExitStatus     int  // -1 if a signal ended it
}

// Run runs a program with an input, and keeps at most limit bytes of each output. When ctx
// ends, the program is ended with everything that it started, and the error is the cause.
func Run(ctx context.Context, c *Command, stdin io.Reader, limit int) (Result, error) {
	stdout, stderr := head{limit: limit}, head{limit: limit}
	cmd := c.command()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	cmd.WaitDelay = StopTime
	if err := c.start(cmd); err != nil {
		return Result{}, err
	}
	stop := context.AfterFunc(ctx, func() { killGroup(cmd) })
	err := cmd.Wait()
	stop()
	killGroup(cmd) // children that it left running
	r := Result{Stdout: stdout.kept, Stderr: stderr.kept, Cut: stdout.cut || stderr.cut, ExitStatus: cmd.ProcessState.ExitCode()}
	_, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case exited || errors.Is(err, exec.ErrWaitDelay):
		return r, nil
	}
	return r, err
}

// command returns the command as package exec has it.
func (c *Command) command() *exec.Cmd {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir, cmd.Env = c.Dir, append([]string{}, c.Env...)
	ownGroup(cmd)
	return cmd
}

// start starts a command.
func (c *Command) start(cmd *exec.Cmd) error {
	if !c.Confine {
		return cmd.Start()
	}
	if !Confines() {
		return fmt.Errorf("%s: confinement is not supported on this system", c.Path)
	}
	return startConfined(cmd, c.Dir)
}

// A head keeps the first bytes that were written to it.
type head struct {
	limit int
	kept  []byte
	cut   bool
}

// Write keeps the start of p, and drops what is above the limit.
func (h *head) Write(p []byte) (int, error) {
	room := min(len(p), h.limit-len(h.kept))
	h.kept, h.cut = append(h.kept, p[:room]...), h.cut || room < len(p)
	return len(p), nil
}

// A tail keeps the last bytes that were written to it.
type tail struct {
	mu   sync.Mutex // guards kept
	kept []byte
}

// tailSize is how much of the standard error of a program is kept.
const tailSize = 2 << 10

// Write keeps the end of p.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[max(0, len(p)-tailSize):]...)
	t.kept = append([]byte(nil), t.kept[max(0, len(t.kept)-tailSize):]...)
	return len(p), nil
}

// String returns what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
