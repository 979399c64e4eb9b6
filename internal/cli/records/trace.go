// Package records writes the files that a run leaves besides its journal: the trace, the events
// and the messages of its agents.
package records

import (
	"fmt"
	"time"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
)

// TraceFlags are the flags of the trace of a run.
type TraceFlags struct {
	File    files.Output // the trace
	Anchor  files.Output // its head
	KeyFile string       // with the key that signs it
}

// AddTo adds the flags to a command.
func (t *TraceFlags) AddTo(cmd *cobra.Command) {
	f := cmd.Flags()
	t.File.Flag, t.Anchor.Flag = "trace", "audit-anchor"
	f.StringVar(&t.File.Path, "trace", "", "write each prompt before it is sent, and every decision about it, to `FILE`, for \"runteam explain\"; what an agent and its model say after the prompt is not in it")
	f.StringVar(&t.Anchor.Path, "audit-anchor", "", "with --trace: write the head of the trace, which reveals alterations, to `FILE`, for \"runteam audit verify\"")
	f.StringVar(&t.KeyFile, "audit-key", "", "sign the trace and what the journal keeps with the key in `FILE` (default: $"+journals.EnvAuditKey+")")
}

// Begin returns the writer of the trace, or nil without --trace. It refuses files that could not be
// written; used are the other files of the command. The file appears with the first record.
func (t *TraceFlags) Begin(cmd *cobra.Command, con *console.Console, file *specfile.File, force bool, used ...string) (*TraceWriter, error) {
	changed := cmd.Flags().Changed
	if !changed("trace") {
		if changed("audit-anchor") {
			return nil, exit.Usagef("--audit-anchor needs --trace")
		}
		return nil, nil
	}
	t.File.Force, t.Anchor.Force = force, force
	key, err := journals.AuditKey(con, "audit-key", t.KeyFile)
	if err != nil {
		return nil, err
	}
	if changed("audit-key") {
		used = append(used, t.KeyFile)
	}
	if err := t.File.CheckWritable(con.WorkDir, used); err != nil {
		return nil, err
	}
	k := &TraceWriter{out: files.LazyOutput{Output: &t.File}, now: con.Now}
	if changed("audit-anchor") {
		if err := t.Anchor.CheckWritable(con.WorkDir, append(used, t.File.Path)); err != nil {
			return nil, err
		}
		k.Anchor = &t.Anchor
	}
	k.writer = trace.NewWriter(&k.out, TraceOptions(file, key, con.Now()))
	return k, nil
}

// TraceOptions returns the header of a trace.
func TraceOptions(file *specfile.File, key []byte, now time.Time) trace.Options {
	o := trace.Options{Run: file.Run.RunID, Name: file.Name, Time: now, Key: key}
	tasks := specfile.WrittenOut(file.Tasks)
	for i := range tasks {
		t := &tasks[i]
		known := trace.Task{ID: task.NewID(t.Title), Key: t.Key, Title: t.Title, Assignee: t.Assignee, Line: t.Source.Origin.String()}
		if t.Instance != nil && t.Instance.Joins {
			known.Rounds = naming.WithoutInstance(t.DependsOn[0].OneOf[0])
		}
		o.Tasks = append(o.Tasks, known)
	}
	for i := range file.Run.Inputs {
		in := &file.Run.Inputs[i]
		o.Inputs = append(o.Inputs, trace.Input{Name: in.Name, Classification: in.Classification, Line: in.Origin.String()})
	}
	return o
}

// A TraceWriter writes the trace of a run. A nil *TraceWriter writes nothing.
type TraceWriter struct {
	out    files.LazyOutput
	Anchor *files.Output // for the head; nil if it is not written
	writer *trace.Writer
	now    func() time.Time
	head   audit.Head
}

// Subscribers returns the subscribers that the trace needs.
func (k *TraceWriter) Subscribers() []func(event.Event) {
	if k == nil {
		return nil
	}
	return []func(event.Event){k.writer.Event}
}

// Recorder returns the recorder of the prompts, or nil.
func (k *TraceWriter) Recorder() record.Recorder {
	if k == nil {
		return nil
	}
	return k.writer.Record
}

// Close writes the result, in its form for the caller, and the head of the decisions.
func (k *TraceWriter) Close(result any) error {
	if k == nil {
		return nil
	}
	head, err := k.writer.Close(result, k.now())
	if closed := k.out.Close(); err == nil {
		err = closed
	}
	if err != nil {
		err = fmt.Errorf("--trace %s: %w", k.out.Output.Path, err)
		if k.Anchor != nil {
			err = fmt.Errorf("%w; --audit-anchor %s: not written, since the trace has no end", err, k.Anchor.Path)
		}
		return &exit.Error{Kind: exit.KindIO, Err: err}
	}
	if k.head = head; k.Anchor != nil {
		if err := k.Anchor.Write([]byte(head.String() + "\n")); err != nil {
			k.Anchor = nil // so that Summary prints the head
			return err
		}
	}
	return nil
}

// Head returns the head of the decisions, once they are closed.
func (k *TraceWriter) Head() string {
	if k == nil || k.head == (audit.Head{}) {
		return ""
	}
	return k.head.String()
}

// Summary names the files, or only the head, which is not in the trace: it proves something only if
// it is stored elsewhere.
func (k *TraceWriter) Summary(whole bool) string {
	text := "audit: " + k.head.String()
	if k.Anchor != nil {
		text += " in " + terminal.CleanLine(k.Anchor.Path)
	}
	if !whole {
		return text
	}
	return fmt.Sprintf("trace: %s; to read it: runteam explain %s\n%s", terminal.CleanLine(k.out.Output.Path), format.ShellPath(k.out.Output.Path), text)
}
