package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/process"
)

// Bounds on a command.
const (
	defaultCommandTime = 30 * time.Second
	maxCommandTime     = 10 * time.Minute
	maxCommandOutput   = 1 << 20 // bytes of each of its two outputs that are kept
)

// Exit statuses of commands that did not end by themselves, as in the shell.
const (
	statusTimeout = 124
	statusAborted = 130
)

type bashArguments struct {
	Command string `json:"command" jsonschema:"the command"`
	Timeout int    `json:"timeout,omitempty" jsonschema:"milliseconds that it may take, default 30000"`
	Dir     string `json:"cwd,omitempty" jsonschema:"the folder to run it in, relative to the workspace"`
}

// errCommandTime ends a command that takes too long.
var errCommandTime = errors.New("the command took too long")

// bash returns the function of the tool bash.
func bash(confine bool, readable []string) func(context.Context, *os.Root, bashArguments) (string, error) {
	return func(ctx context.Context, root *os.Root, in bashArguments) (string, error) {
		dir, err := inside(root, cmp.Or(in.Dir, "."))
		if err != nil {
			return "", err
		}
		if info, err := root.Stat(dir); err != nil || !info.IsDir() {
			return "", fmt.Errorf("%s: not a folder in the workspace", dir)
		}
		limit := min(cmp.Or(time.Duration(max(in.Timeout, 0))*time.Millisecond, defaultCommandTime), maxCommandTime)
		limited, cancel := context.WithTimeoutCause(ctx, limit, errCommandTime)
		defer cancel()
		r, err := process.Run(limited, &process.Command{
			Path: "bash", Args: []string{"-c", `cd -- "$0" && eval "$1"`, dir, in.Command}, Dir: root.Name(), Confine: confine, Readable: readable,
			Env: []string{"PATH=" + cmp.Or(os.Getenv("PATH"), "/usr/local/bin:/usr/bin:/bin"), "HOME=" + root.Name(), "TMPDIR=" + root.Name(), "LANG=C.UTF-8"},
		}, nil, maxCommandOutput)
		switch {
		case errors.Is(err, errCommandTime):
			r.ExitStatus = statusTimeout
			fmt.Fprintf((*appender)(&r.Stderr), "\nkilled after %v\n", limit)
		case ctx.Err() != nil:
			r.ExitStatus = statusAborted
		case err != nil:
			return "", err
		}
		return output(&r), nil
	}
}

// An appender appends what is written to it.
type appender []byte

func (a *appender) Write(p []byte) (int, error) {
	*a = append(*a, p...)
	return len(p), nil
}

// output returns the exit status and both outputs as one text. The status comes first, since
// a text that is too long is cut at the end.
func output(r *process.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "exit status %d\n", r.ExitStatus)
	if r.Exceeded != "" {
		fmt.Fprintf(&b, "(stopped: %s)\n", r.Exceeded)
	}
	if r.Cut || r.StderrCut {
		fmt.Fprintf(&b, "(output cut after %d bytes)\n", maxCommandOutput)
	}
	if len(r.Stderr) > 0 {
		fmt.Fprintf(&b, "stderr:\n%s\n", strings.ToValidUTF8(string(r.Stderr), "\uFFFD"))
	}
	if len(r.Stdout) > 0 {
		fmt.Fprintf(&b, "stdout:\n%s", strings.ToValidUTF8(string(r.Stdout), "\uFFFD"))
	}
	return b.String()
}
