package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/task"
)

// tracing is what of a run is to be written down, as flags ask for it.
type tracing struct {
	file    newFile // the trace
	anchor  newFile // its head
	keyFile string
}

func (t *tracing) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	t.file.flag, t.anchor.flag = "trace", "audit-anchor"
	f.StringVar(&t.file.path, "trace", "", "write each prompt before it is sent, and every decision about it, to `FILE`, for \"runteam explain\"; what an agent and its model say after the prompt is not in it")
	f.StringVar(&t.anchor.path, "audit-anchor", "", "with --trace: write the head of the trace, by which alterations are found, to `FILE`, for \"runteam audit verify\"")
	f.StringVar(&t.keyFile, "audit-key", "", "sign the trace and what the journal keeps with the key in `FILE` (default: $"+envAuditKey+")")
}

// begin returns what keeps the trace of a run, or nil if no flag asks for it.
// It refuses files that could not be written; read are files that the command
// reads, or writes besides. Nothing is written before something is to be told.
func (t *tracing) begin(cmd *cobra.Command, a *app, file *specfile.File, force bool, read ...string) (*keeper, error) {
	changed := cmd.Flags().Changed
	if !changed("trace") {
		if changed("audit-anchor") {
			return nil, usageError("--audit-anchor needs --trace")
		}
		return nil, nil
	}
	t.file.force, t.anchor.force = force, force
	key, err := t.key(changed("audit-key"), a)
	if err != nil {
		return nil, err
	}
	if changed("audit-key") {
		read = append(read, t.keyFile)
	}
	if err := t.file.writable(read); err != nil {
		return nil, err
	}
	k := &keeper{out: traceFile{file: &t.file}, now: a.now}
	if changed("audit-anchor") {
		if err := t.anchor.writable(append(read, t.file.path)); err != nil {
			return nil, err
		}
		k.anchor = &t.anchor
	}
	k.writer = trace.NewWriter(&k.out, optionsOf(file, key, a.now()))
	return k, nil
}

// writable refuses a file that could not be written, or that the command uses
// for something else, whether it exists by now or not.
func (f *newFile) writable(read []string) error {
	own, err := filepath.Abs(f.path)
	for _, path := range read {
		if other, bad := filepath.Abs(path); f.path != "" && path != "" && err == nil && bad == nil && own == other {
			return usageError("--%s %s: the command uses this file for something else: name another one", f.flag, f.path)
		}
	}
	return f.check(read...)
}

// key returns the key of the chain of decisions, or none.
func (t *tracing) key(given bool, a *app) ([]byte, error) {
	if given && t.keyFile == "" {
		return nil, usageError("--audit-key is empty: name a file")
	}
	return a.auditKey("audit-key", t.keyFile)
}

// optionsOf says what a trace is of.
func optionsOf(file *specfile.File, key []byte, now time.Time) trace.Options {
	o := trace.Options{Run: file.Run.RunID, Name: file.Name, Time: now, Key: key}
	for i := range file.Tasks {
		t := &file.Tasks[i]
		o.Tasks = append(o.Tasks, trace.Task{ID: task.NewID(t.Title), Key: t.Key, Title: t.Title, Assignee: t.Assignee, Line: t.Origin.String()})
	}
	for i := range file.Run.Inputs {
		in := &file.Run.Inputs[i]
		o.Inputs = append(o.Inputs, trace.Input{Name: in.Name, Classification: in.Classification, Line: in.Origin.String()})
	}
	return o
}

// A keeper keeps the trace of a run. A nil *keeper keeps nothing.
type keeper struct {
	out    traceFile
	anchor *newFile // nil if the head is written nowhere
	writer *trace.Writer
	now    func() time.Time
	head   audit.Head
}

// watch returns the subscribers that the trace needs.
func (k *keeper) watch() []func(event.Event) {
	if k == nil {
		return nil
	}
	return []func(event.Event){k.writer.Event}
}

// recorder is told of each prompt before it is sent.
type recorder interface {
	Record(ctx context.Context, r record.Prompt) error
}

// recorder returns what a run tells of its prompts, or nil.
func (k *keeper) recorder() recorder {
	if k == nil {
		return nil
	}
	return k.writer
}

// end writes the result, in its form for the caller, and the head of the
// decisions where the flags say.
func (k *keeper) end(result any) error {
	if k == nil {
		return nil
	}
	head, err := k.writer.Close(result, k.now())
	if closed := k.out.close(); err == nil {
		err = closed
	}
	if err != nil {
		err = fmt.Errorf("--trace %s: %w", k.out.file.path, err)
		if k.anchor != nil {
			err = fmt.Errorf("%w; --audit-anchor %s: not written, since the trace has no end", err, k.anchor.path)
		}
		return &fault{kind: kindIO, err: err}
	}
	if k.head = head; k.anchor != nil {
		if err := k.anchor.write([]byte(head.String() + "\n")); err != nil {
			k.anchor = nil // so the head is said
			return err
		}
	}
	return nil
}

// chained returns the head of the decisions, once they are closed.
func (k *keeper) chained() string {
	if k == nil || k.head == (audit.Head{}) {
		return ""
	}
	return k.head.String()
}

// summary says what stands where, or in short the head alone: it is worth
// something only apart from the file, and stands nowhere else without an anchor.
func (k *keeper) summary(whole bool) string {
	text := "audit: " + k.head.String()
	if k.anchor != nil {
		text += " in " + cleanLine(k.anchor.path)
	}
	if !whole {
		return text
	}
	return fmt.Sprintf("trace: %s; to read it: runteam explain %s\n%s", cleanLine(k.out.file.path), shellWord(k.out.file.path), text)
}

// traceFile is a new file that appears with the first thing that is written to
// it, so that a run that never starts replaces nothing.
type traceFile struct {
	file *newFile
	out  *os.File
}

func (f *traceFile) Write(p []byte) (int, error) {
	if f.out == nil {
		var err error
		if f.out, err = f.file.create(); err != nil {
			return 0, err
		}
	}
	n, err := f.out.Write(p)
	return n, plainly(err) // the file knows its first name only
}

// Sync brings what was written to the disk.
func (f *traceFile) Sync() error {
	if f.out == nil {
		return nil
	}
	return plainly(f.out.Sync())
}

func (f *traceFile) close() error {
	if f.out == nil {
		return nil
	}
	return plainly(f.out.Close())
}

// create makes the file at once, empty and under its name, for what cannot
// wait until all is known. It replaces what write would.
func (f *newFile) create() (*os.File, error) {
	root, err := f.open()
	if err != nil {
		return nil, plainly(err)
	}
	defer root.Close()
	file, temp, err := f.temporary(root)
	if err != nil {
		return nil, plainly(err)
	}
	if err := f.moveIn(root, temp); err != nil {
		_ = file.Close()
		_ = root.Remove(temp)
		return nil, plainly(err)
	}
	return file, nil
}
