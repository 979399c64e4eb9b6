// Package process runs programs on behalf of agents: with a minimal environment, limits on
// time and output, and cleanup of child processes. On Linux it can confine a program to one
// folder.
package process

import (
	"cmp"
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

	"github.com/runteam/runteam/internal/mask"
)

// A Command says what to run.
type Command struct {
	Path string
	Args []string
	Dir  string   // empty means the folder of this process
	Env  []string // the whole environment, as NAME=value; see [Environment]

	// Confine confines the program to Dir and the system's programs. It is an error where
	// [Confines] reports false.
	Confine  bool
	Readable []string // other files that a confined program may read and execute
	Limits   *Limits  // of a confined program; nil means the default

	// Mask has the values that are replaced in the outputs of the program; Start leaves the
	// standard output as it is.
	Mask *mask.Values

	// Grace is how long Run waits after it asked the program to end (SIGTERM) before it kills
	// it. Zero means that it is killed at once.
	Grace time.Duration

	EndWhenFull bool // Run ends a program whose standard output is larger than what is kept
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

// StopTime is how long a program may take to end once its input was closed. Tests of programs that do not end shorten it.
var StopTime = 2 * time.Second

// A Process is a running program.
type Process struct {
	Stdin  io.WriteCloser
	Stdout io.ReadCloser

	cmd      *exec.Cmd
	stderr   tail
	exited   chan struct{} // closed when the program has ended
	exceeded string        // which limit it reached; read after exited
	once     sync.Once
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
	masked := c.Mask.Writer(&p.stderr)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, masked
	p.cmd.WaitDelay = StopTime // for children that keep the standard error open
	quota, err := c.start(p.cmd)
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
		_ = masked.Flush()
		p.exceeded = quota.stop(p.cmd.ProcessState)
	}()
	return p, nil
}

// Stderr returns the end of what the program wrote to its standard error.
func (p *Process) Stderr() string { return p.stderr.String() }

// Exceeded says which limit ended a confined program; empty if none did, or if it still runs.
func (p *Process) Exceeded() string {
	select {
	case <-p.exited:
		return p.exceeded
	default:
		return ""
	}
}

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
	Stdout, Stderr []byte // the beginning of the standard output, and the end of the standard error
	Cut, StderrCut bool   // more was written than is kept
	ExitStatus     int    // -1 if a signal ended it
	Exceeded       string // which limit a confined program reached; empty if none
}

// Run runs a program with an input, and keeps at most limit bytes of each output. When ctx
// ends, the program is ended with everything in its process group, and the error is the cause.
func Run(ctx context.Context, c *Command, stdin io.Reader, limit int) (Result, error) {
	cmd := c.command()
	stdout, stderr := &head{limit: limit}, &tail{limit: limit}
	if c.EndWhenFull {
		stdout.full = func() { killGroup(cmd) }
	}
	out, errs := c.Mask.Writer(stdout), c.Mask.Writer(stderr)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, out, errs
	cmd.WaitDelay = StopTime
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	quota, err := c.start(cmd)
	if err != nil {
		return Result{}, err
	}
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-ctx.Done():
			endGroup(cmd, c.Grace, over)
		case <-over:
		}
	}()
	err = cmd.Wait()
	close(over)
	<-watched
	killGroup(cmd) // children that it left running
	_, _ = out.Flush(), errs.Flush()
	r := Result{Stdout: stdout.kept, Stderr: stderr.last(limit), Cut: stdout.cut, StderrCut: stderr.cut, ExitStatus: cmd.ProcessState.ExitCode()}
	r.Exceeded = quota.stop(cmd.ProcessState)
	_, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case exited || errors.Is(err, exec.ErrWaitDelay):
		return r, nil
	}
	return r, err
}

// endGroup asks the group of a program to end, and kills it if the program has not ended
// after a while.
func endGroup(cmd *exec.Cmd, grace time.Duration, over <-chan struct{}) {
	if grace > 0 {
		terminateGroup(cmd)
		select {
		case <-over:
			return
		case <-time.After(grace):
		}
	}
	killGroup(cmd)
}

// command returns the command as package exec has it.
func (c *Command) command() *exec.Cmd {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir, cmd.Env = c.Dir, append([]string{}, c.Env...)
	ownGroup(cmd)
	return cmd
}

// start starts a command. The caller must stop the quota, which is nil for a program that is
// not confined.
func (c *Command) start(cmd *exec.Cmd) (*quota, error) {
	if !c.Confine {
		return nil, cmd.Start()
	}
	if missing := Missing(); missing != "" {
		return nil, fmt.Errorf("%s: this system cannot confine programs: it lacks %s", c.Path, missing)
	}
	cmd.Env = append(cmd.Env, "GIT_CONFIG_NOSYSTEM=1") // git ends if it may not read a file of its configuration
	q := newQuota(c.Dir, cmp.Or(c.Limits, defaultLimits()))
	if err := startConfined(cmd, c.Readable, q); err != nil {
		return nil, err
	}
	q.watch(cmd)
	return q, nil
}

// Confines reports whether this system can confine programs; see [Missing].
func Confines() bool { return Missing() == "" }

// How a command of an agent runs, in plans.
const (
	Confined   = "confined"
	Unconfined = "unconfined"
)

// Machine is the name of what all commands that are not confined share: files, processes and
// the network. What one of them reads can reach every other.
const Machine = "machine"
