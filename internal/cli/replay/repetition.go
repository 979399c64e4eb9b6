package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/report"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/promptview"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
)

// A repetition is a stored run that is repeated from the journal.
type repetition struct {
	run *journals.StoredRun

	mu   sync.Mutex          // guards what follows
	seen map[record.Key]bool // masked keys of the prompts that were built
}

// replay repeats a run without calling a model.
func replay(con *console.Console, cmd *cobra.Command, r *replayFlags) error {
	k, err := loadRun(con, cmd, &r.ReadFlags)
	if err != nil {
		return err
	}
	again := &repetition{run: k, seen: map[record.Key]bool{}}
	res, output, err := again.repeat(cmd.Context(), con, r)
	if err != nil {
		return err
	}
	res.Command = k.Command
	differing := again.differences(res)
	again.complete(res, len(differing) == 0)
	if err := report.PrintAnswer(con, output, res, false); err != nil {
		return err
	}
	return printVerdict(cmd.Context(), con, again, differing)
}

// repeat repeats the run with a team whose agents are not called. It returns the tasks whose results
// form the answer, unless the coordinator wrote it.
func (r *repetition) repeat(ctx context.Context, con *console.Console, flags *replayFlags) (res *engine.Result, output []task.ID, err error) {
	s, err := flags.loadSpec(ctx, con, r.run, false)
	if err != nil {
		return nil, nil, err
	}
	file := s.File
	t, err := s.Repeater(con.LookupEnv, r.run.Whole.Log)
	if err != nil {
		return nil, nil, err
	}
	o := s.RepeatOptions(r.run.Run, &r.run.Whole, r.mask)
	o.Assert = nil // they held when the run started
	if flags.reveal {
		o.UserAccepts, o.Reveal = new(label.Secret), true
	}
	if file.Goal == nil && o.Answer == nil {
		plan, err := t.Plan(file.Tasks, &o)
		if err != nil {
			return nil, nil, file.Locate(err)
		}
		output = plan.Output
	}
	res, err = t.Replay(ctx, r.run.Run, &o)
	return res, output, file.Locate(err)
}

// mask returns the form in which the journal stores the key of a prompt, and records the key.
func (r *repetition) mask(key record.Key) record.Key {
	if r.run.History.Mask != nil {
		key = r.run.History.Mask(key)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[key] = true
	return key
}

// complete adds to a result how the stored run ended, which a replay cannot know.
func (r *repetition) complete(res *engine.Result, equal bool) {
	end := r.run.History.End
	if end == nil {
		return
	}
	if equal {
		res.Status = engine.Status(end.Status)
	}
	for i := range res.Tasks {
		if m := &res.Tasks[i].Metrics; m.Attempts > 0 && m.End.IsZero() { // it was in progress when the run ended
			m.End = end.Time
		}
	}
}

// printVerdict says on stderr whether the replay equals the run and, if not, where it differs.
func printVerdict(ctx context.Context, con *console.Console, r *repetition, differing []difference) error {
	if stop, ok := errors.AsType[*exit.Interrupted](context.Cause(ctx)); ok {
		return exit.Status(stop.Status())
	}
	c := r.counts()
	text := fmt.Sprintf("replayed %s of %s", format.Number(c.built), format.Plural(c.want, "prompt"))
	if len(differing) == 0 {
		for _, x := range c.missing {
			differing = append(differing, difference{title: x.Title, why: notBuilt(x)})
		}
	} else if first := &differing[0]; first.prompt != nil {
		first.why = firstDifference(r.run.Trace, first.prompt)
	}
	if len(differing) == 0 {
		con.Say("runteam: %s, equal to the byte", text)
		if c.later > 0 {
			con.Say("         %s after calls of tools not repeated: a replay calls no tool", format.Plural(c.later, "prompt"))
		}
		switch status := r.run.Status; {
		case r.run.History.End == nil:
			con.Say("         the run did not end: it is %s", terminal.CleanLine(status))
		case status != string(engine.StatusOK):
			con.Say("         the run ended with %s, and so does its replay", terminal.CleanLine(status))
		}
		return nil
	}
	con.Say("runteam: %s; the replay differs from the run", text)
	for i, o := range differing {
		if i == report.MaxFailures {
			con.Say("… and %d more", len(differing)-i)
			break
		}
		con.Say("differs: %s: %s", terminal.CleanLine(o.title), terminal.Clean(o.why))
	}
	return exit.Status(exit.StatusFailed)
}

// A difference is a task in which the replay differs from the run.
type difference struct {
	title  string
	why    string
	prompt *promptview.Shown // the prompt that differs; nil if it was not built, or something else differs
}

// promptDiffers says that a prompt of the replay is not the one that was sent.
const promptDiffers = "its prompt differs"

// differences returns the tasks whose prompts differ or, if none does, those whose status differs.
func (r *repetition) differences(res *engine.Result) (list []difference) {
	add := func(title string, err *engine.TaskError) {
		o := difference{title: title, why: promptDiffers}
		if differs, ok := errors.AsType[*engine.ReplayError](err); ok {
			o.prompt = &differs.Prompt
			if x := r.unreadable(o.prompt.Receipt.Task); x != nil {
				o.prompt, o.why = nil, "its prompt is the same, but its answer cannot be read: "+unreadableWhy(x)
			}
		}
		list = append(list, o)
	}
	for i := range res.Tasks {
		if t := &res.Tasks[i]; t.Error != nil && t.Error.Root == "" && t.Error.Code == codes.Replay {
			add(t.Title, t.Error)
		}
	}
	for i := range res.Steps {
		if s := &res.Steps[i]; s.Error != nil && (s.Error.Code == codes.Replay || s.Error.Reason == codes.Replay) {
			add(string(s.Kind), s.Error)
		}
	}
	if len(list) > 0 || r.run.History.End == nil {
		return list
	}
	for _, t := range res.Tasks {
		if stored := r.run.Find(t.ID); stored != nil && r.run.State.Shown(stored) != t.Status {
			list = append(list, difference{title: t.Title, why: fmt.Sprintf("it is %s, and was %s", format.Status(t.Status), format.Status(r.run.State.Shown(stored)))})
		}
	}
	return list
}

// unreadable returns the call of a task whose prompt is equal and whose answer cannot be read;
// nil if there is none.
func (r *repetition) unreadable(id task.ID) *record.AgentCall {
	t := r.run.Find(id)
	if t == nil {
		return nil
	}
	for _, x := range t.Answered() {
		if r.seen[x.Key] && x.Completed() && unreadableWhy(x) != "" {
			return x
		}
	}
	return nil
}

// unreadableWhy says why an answer cannot be read; it is empty if it can.
func unreadableWhy(x *record.AgentCall) string {
	switch {
	case x.Missing != "":
		return x.Missing
	case x.Result == nil:
		return "it is not in the journal"
	}
	var e *envelope.Envelope
	var err error
	if e, err = x.Result.Envelope(); err == nil {
		err = e.Genuine()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// notBuilt says which prompt of a task the replay did not build.
func notBuilt(x *record.AgentCall) string {
	if x.Part == "" {
		return fmt.Sprintf("its prompt of attempt %d was not built again", x.Attempt)
	}
	return fmt.Sprintf("its prompt of attempt %d%s was not built again", x.Attempt, strings.ReplaceAll(x.Part, "/", " "))
}

// A promptCount counts the prompts that the result of a run consists of.
type promptCount struct {
	want    int                 // without tasks that are computed, which call no agent
	built   int                 // of these, by the replay again
	missing []*record.AgentCall // whose prompts the replay did not build again
	later   int                 // prompts after calls of tools, which are not in want
}

// counts returns how many prompts the result of the run consists of, and which of them the replay did not
// build again.
func (r *repetition) counts() (c promptCount) {
	known := map[record.Key]bool{}
	final, later := finalCalls(r.run)
	c.later = later
	for _, x := range final {
		if known[x.Key] || r.run.IsAbove(x.Task) {
			continue
		}
		known[x.Key] = true
		if !r.seen[x.Key] {
			c.missing = append(c.missing, x)
		}
		if x.Agent != handoff.Computed {
			c.want++
			if r.seen[x.Key] {
				c.built++
			}
		}
	}
	return c
}
