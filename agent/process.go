package agent

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/mask"
	"github.com/runteam/runteam/internal/oneline"
	"github.com/runteam/runteam/internal/process"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/internal/supervise"
	"github.com/runteam/runteam/internal/workspace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
)

// A Process is an agent that runs a command for each prompt. The answer is what the command
// writes to its standard output, without leading and trailing whitespace; a schema is applied
// to it as to the text of a model. An exit status other than 0 is an error.
//
// The command runs in the workspace of the attempt, an empty folder that is removed
// afterwards. On Linux it is confined to this folder and the programs of the system: it has
// no network and cannot read other files. A command that is not confined can reach the
// network and every other unconfined command, and a team treats it so.
//
// Do not change a Process after you pass it to a team.
type Process struct {
	Command string // a program in PATH, or a path
	Args    []string

	// Env is added to PATH, HOME, LANG, TMPDIR and SystemRoot of this process; the command
	// gets no other variables. A confined command has its workspace as HOME and TMPDIR. The
	// values, if they have at least 4 bytes, are replaced by ${NAME} wherever the command
	// writes them.
	Env map[string]string

	// Secrets are other values that are replaced in the same way, such as one in Args.
	Secrets map[string]string

	Dir string // folder to run in; only for a command that is not confined; empty means the workspace

	// Input says how the command gets its prompt: [InputStdin], also if empty (the system
	// prompt, an empty line and the message), [InputArgument] (the same text as the last
	// argument; for context up to internal, since other users of the machine can read it) or
	// [InputNone].
	Input string

	Timeout   time.Duration // bound on the command for one prompt; zero means 10 minutes
	MaxOutput int           // bytes of an answer; a longer one is truncated. Zero means 1 MiB

	// Confine says whether the command is confined. Nil confines it on systems that can do
	// that. True is an error on systems that cannot, and false runs the command with the rights
	// of this process.
	Confine *bool

	// Readable are other files and folders that a confined command may read and execute, such as
	// those of an interpreter; absolute paths. What they hold passes no gate. A path with keys of
	// the user, files of the kernel or the journal is an error.
	Readable []string

	// Repeatable says that an unconfined command may run again after it was interrupted.
	// Otherwise an interrupted command fails its task with EFFECTS_UNCERTAIN.
	Repeatable bool

	digest     string // of the file of the program; empty for one in PATH
	readDigest sync.Once
}

// Values of [Process].Input.
const (
	InputStdin    = "stdin"
	InputArgument = "argument"
	InputNone     = "none"
)

const (
	defaultProcessTime   = 10 * time.Minute
	defaultProcessOutput = 1 << 20
	maxStderrTail        = 280         // bytes of the standard error in an error message
	maxArgument          = 128<<10 - 1 // bytes that Linux allows in one argument
)

// Unconfined reports whether the command runs with the rights of this process.
func (a *Process) Unconfined() bool {
	if a.Confine == nil {
		return !process.Confines()
	}
	return !*a.Confine
}

// Check returns an error if the command cannot be run as described. A team checks its agents
// with it.
func (a *Process) Check() error {
	switch {
	case a == nil, a.Command == "":
		return errors.New("the command is empty; name a program")
	case !slices.Contains([]string{"", InputStdin, InputArgument, InputNone}, a.Input):
		return fmt.Errorf("unknown input %q; use stdin, argument or none", a.Input)
	case a.Timeout < 0 || a.MaxOutput < 0:
		return errors.New("the timeout and the maximum output must not be negative; use zero for the default")
	case a.Confine != nil && *a.Confine && !process.Confines():
		return fmt.Errorf("this system cannot confine commands: it lacks %s; set confine to false to run it with access to files and the network", process.Missing())
	case a.Dir != "" && !a.Unconfined():
		return errors.New("a confined command runs in its workspace; leave the folder out, or set confine to false")
	}
	if len(a.Readable) > 0 && a.Confine != nil && !*a.Confine {
		return errors.New("a command that is not confined can read every file; leave the readable files out, or confine it")
	}
	for _, path := range a.Readable {
		if err := process.CheckReadable(path); err != nil {
			return fmt.Errorf("readable: %w", err)
		}
	}
	for name, value := range a.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return fmt.Errorf("the environment variable %q is invalid; a name contains no = and nothing contains a zero byte", name)
		}
	}
	_, err := a.path()
	return err
}

// path returns the path of the program. One with a separator is relative to the folder of
// this process, as the command may run in another one.
func (a *Process) path() (string, error) {
	path, err := exec.LookPath(a.Command)
	if err != nil {
		if at, ok := errors.AsType[*exec.Error](err); ok {
			err = at.Err
		}
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			err = at.Err // the message names the path as it was written
		}
		return "", fmt.Errorf("command %q: %w; %s", a.masks().Text(a.Command), err, a.remedy(err))
	}
	return filepath.Abs(path)
}

// remedy says what to do if the program cannot be run.
func (a *Process) remedy(err error) string {
	program, _, hasArguments := strings.Cut(a.Command, " ")
	_, missing := exec.LookPath(program)
	switch {
	case hasArguments && missing == nil:
		return "write what follows the program as arguments"
	case errors.Is(err, fs.ErrPermission):
		return "make it executable with chmod +x"
	case strings.ContainsRune(a.Command, filepath.Separator):
		return "correct the path"
	}
	return "install it, or write the path of another one"
}

// masks returns the values that are replaced in what the command writes.
func (a *Process) masks() *mask.Values { return mask.New(a.Env, a.Secrets) }

// Run runs the command with p.
func (a *Process) Run(ctx context.Context, p prompt.Prompt) (Reply, error) {
	if err := a.Check(); err != nil {
		return Reply{}, err
	}
	output, err := schemaOf(p)
	if err != nil {
		return Reply{}, err
	}
	root, remove, err := workspaceOf(ctx)
	if err != nil {
		return Reply{}, err
	}
	defer remove()
	c, stdin, err := a.command(p, root)
	if err != nil {
		return Reply{}, err
	}
	limit := cmp.Or(a.Timeout, defaultProcessTime)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: the command took more than %v", Condition(codes.Timeout), limit))
	defer cancel()
	r, err := process.Run(ctx, c, stdin, cmp.Or(a.MaxOutput, defaultProcessOutput))
	if err = a.failure(ctx, &r, c.Mask.Error(err)); err != nil {
		return Reply{}, err
	}
	reply := Reply{Text: strings.TrimSpace(strings.ToValidUTF8(string(r.Stdout), "\uFFFD")), Truncated: r.Cut}
	if r.Cut {
		err = fmt.Errorf("%w: the command wrote more than %d bytes; write less, or raise MaxOutput", Condition(codes.Truncated), len(r.Stdout))
	}
	if output == nil {
		return reply, err
	}
	return a.structured(ctx, reply, output, c.Mask, err)
}

// workspaceOf returns the workspace of the attempt, or outside a team a folder of its own, and
// a function that removes the latter.
func workspaceOf(ctx context.Context) (root *os.Root, remove func(), err error) {
	if open := supervise.Workspace(ctx); open != nil {
		root, err = open()
		return root, func() {}, err
	}
	f, err := workspace.Make("", "runteam-")
	if err != nil {
		return nil, nil, err
	}
	return f.Root, func() { _ = f.Remove() }, nil
}

// command returns what to run for a prompt, and its input.
func (a *Process) command(p prompt.Prompt, root *os.Root) (*process.Command, io.Reader, error) {
	path, err := a.path()
	if err != nil {
		return nil, nil, err
	}
	c := &process.Command{
		Path: path, Args: slices.Clone(a.Args), Dir: cmp.Or(a.Dir, root.Name()), Mask: a.masks(),
		Confine: !a.Unconfined(), Env: process.Environment(a.Env), Grace: process.StopTime,
	}
	if c.Confine { // its files are removed anyway, so it may be killed at once
		env := map[string]string{"HOME": root.Name(), "TMPDIR": root.Name()}
		maps.Copy(env, a.Env)
		c.Env, c.Readable, c.Grace, c.EndWhenFull = process.Environment(env), append([]string{path}, a.Readable...), 0, true
	}
	text := p.Text()
	if system := p.System(); system != "" {
		text = system + "\n\n" + text
	}
	switch level := p.Receipt().Classification; {
	case a.Input == InputNone:
		return c, nil, nil
	case a.Input != InputArgument:
		return c, strings.NewReader(text), nil
	case level > label.Internal:
		return nil, nil, fmt.Errorf("the prompt is %v, and other users can read the arguments of a command; set input to stdin", level)
	case len(text) > maxArgument || strings.ContainsRune(text, 0):
		return nil, nil, fmt.Errorf("the prompt has %d bytes and cannot be an argument; set input to stdin", len(text))
	}
	c.Args = append(c.Args, text)
	return c, nil, nil
}

// failure returns why a command has no answer, or nil.
func (a *Process) failure(ctx context.Context, r *process.Result, err error) error {
	switch {
	case err != nil && ctx.Err() != nil:
		if errors.Is(ctx.Err(), context.DeadlineExceeded) && a.Unconfined() && !a.Repeatable {
			return fmt.Errorf("%w: the command was interrupted: %w", Condition(codes.Effects), err)
		}
		return err
	case err != nil:
		return fmt.Errorf("run the command: %w", err)
	case r.Exceeded != "":
		return fmt.Errorf("the command was stopped: %s%s", r.Exceeded, stderrTail(r.Stderr))
	case r.Cut && !a.Unconfined(): // it was ended because of that
		return nil
	case r.ExitStatus < 0:
		return fmt.Errorf("a signal ended the command%s", stderrTail(r.Stderr))
	case r.ExitStatus > 0:
		return fmt.Errorf("the command exited with status %d%s", r.ExitStatus, stderrTail(r.Stderr))
	}
	return nil
}

// stderrTail returns the end of an error message: the end of the standard error, if there is any.
func stderrTail(stderr []byte) string {
	stderr = bytes.TrimSpace(stderr)
	if len(stderr) == 0 {
		return ""
	}
	return "; stderr: " + oneline.Of(string(stderr[max(0, len(stderr)-maxStderrTail):]))
}

// structured reads the answer as the schema demands. If the answer does not match, the command
// may run once more with the problem, unless it reads no input or must not be repeated.
func (a *Process) structured(ctx context.Context, reply Reply, s *schema.Schema, secrets *mask.Values, truncated error) (Reply, error) {
	problem := reply.read(ctx, s)
	if problem == nil {
		if canonical := reply.JSON.Canonical(); secrets.Text(canonical) != canonical { // it was escaped in another way
			reply.Text = secrets.Text(canonical)
			problem = reply.read(ctx, s)
		}
	}
	_, supervised := supervise.Turn(ctx)
	switch {
	case errors.Is(problem, schema.ErrGuard):
		return reply, schema.Reject(problem)
	case truncated != nil:
		return reply, truncated
	case problem == nil:
		return reply, nil
	case supervised && a.Input != InputNone && (a.Repeatable || !a.Unconfined()):
		return reply, schema.Reject(problem)
	}
	return reply, fmt.Errorf("%w: %w", Condition(codes.Schema), problem)
}

// read finds the structured answer in the text and validates it. It removes other words
// around the answer, because nothing validated them.
func (r *Reply) read(ctx context.Context, s *schema.Schema) error {
	v, found, err := jsonvalue.Find(r.Text, s.AllowsType)
	if err != nil {
		return err
	}
	if err := s.ValidateContext(ctx, v); err != nil {
		return err
	}
	r.JSON, r.Text = v, found
	return nil
}

// Version identifies what the answers of the command depend on besides its prompts: a digest
// of the command line, the form of the input, the names of the variables, and the contents of
// a program that is not in PATH. Values of Env and Secrets do not count.
func (a *Process) Version() string {
	a.readDigest.Do(func() {
		if filepath.Base(a.Command) == a.Command {
			return
		}
		if f, err := os.Open(a.Command); err == nil {
			defer f.Close()
			h := sha256.New()
			if _, err := io.Copy(h, f); err == nil {
				a.digest = fmt.Sprintf("%x", h.Sum(nil))
			}
		}
	})
	command, masks := a.Command, a.masks()
	args := make([]string, len(a.Args)) // short secrets could be guessed from a digest
	for i := range args {
		args[i] = masks.Text(a.Args[i])
	}
	if a.digest != "" {
		command = filepath.Base(command) // the same program in another folder
	}
	parts := []any{masks.Text(command), a.digest, args, cmp.Or(a.Input, InputStdin), slices.Sorted(maps.Keys(a.Env)), a.Unconfined()}
	if len(a.Readable) > 0 {
		parts = append(parts, a.Readable)
	}
	raw, err := json.Marshal(parts)
	if err != nil {
		panic(err) // texts and truth values
	}
	return fmt.Sprintf("process %x", sha256.Sum256(raw))
}

// Format writes the command without its arguments, so that no verb prints secrets.
func (a *Process) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "command %q", a.masks().Text(a.Command))
}
