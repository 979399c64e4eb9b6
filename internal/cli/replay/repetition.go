package replay

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/report"
	"github.com/runteam/runteam/internal/cli/run"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
)

// A repetition is a stored run that is repeated from the journal.
type repetition struct {
	run  *journals.StoredRun
	file *specfile.File
	team *engine.Team
	o    engine.RunOptions

	mu   sync.Mutex          // guards what follows
	seen map[record.Key]bool // masked keys of the prompts that were built
}

// replay repeats a run without calling a model.
func replay(con *console.Console, cmd *cobra.Command, r *replayFlags) error {
	k, err := loadRun(con, cmd, &r.ReadFlags)
	if err != nil {
		return err
	}
	again, err := newRepetition(cmd.Context(), con, r, k)
	if err != nil {
		return err
	}
	res, output, err := again.repeat(cmd.Context())
	if err != nil {
		return again.file.Locate(err)
	}
	res.Command = k.Command
	odd := again.differences(res)
	again.complete(res, len(odd) == 0)
	if err := report.PrintAnswer(con, output, res, false); err != nil {
		return err
	}
	return printVerdict(cmd.Context(), con, again, odd)
}

// newRepetition builds the team of a run, whose agents are not called.
func newRepetition(ctx context.Context, con *console.Console, r *replayFlags, k *journals.StoredRun) (*repetition, error) {
	m, file, err := r.loadSpec(ctx, con, k, false)
	if err != nil {
		return nil, err
	}
	m.RestoreVersions(file)
	restoreModels(k, file)
	for i := range file.Agents { // no model is called, and prices may have changed
		file.Agents[i].Member.MaxTokenBudget, file.Agents[i].Member.MaxCostBudget = 0, 0
	}
	if c := file.Coordinator; c != nil {
		c.MaxTokenBudget, c.MaxCostBudget = 0, 0
	}
	t, err := connect.BuildTeam(file, silentAgents(m, con.LookupEnv))
	if err != nil {
		return nil, err
	}
	again := &repetition{run: k, file: file, team: t, o: file.Run, seen: map[record.Key]bool{}}
	again.o.RunID, again.o.Assert, again.o.Reuse, again.o.Timeout, again.o.MaxTokenBudget, again.o.MaxCostBudget = k.Run, nil, false, 0, 0, 0 // the run started, so these are not checked again
	if r.reveal {
		again.o.UserAccepts, again.o.Reveal = new(label.Secret), true
	}
	history := k.History
	history.Mask = again.mask
	again.o.Replay, again.o.Journal = &engine.Replay{Without: m.Without, WithoutInputs: m.WithoutInputs}, run.ReplayJournal{History: &history}
	return again, nil
}

// silentAgents connects agents that are not called. Their endpoints are those of the run.
func silentAgents(m *run.StoredInvocation, lookup func(string) (string, bool)) func(specfile.Agent) (engine.Agent, error) {
	return func(ag specfile.Agent) (engine.Agent, error) {
		bases := append([]string{m.Endpoints[ag.Member.Name]}, m.Fallback[ag.Member.Name]...)
		if bases[0] == "" {
			bases, _ = connect.AgentBaseURLs(ag, lookup)
		}
		return connect.SilentAgent(bases, nil), nil
	}
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

// repeat repeats the run.
func (r *repetition) repeat(ctx context.Context) (res *engine.Result, output []task.ID, err error) {
	if r.file.Goal == nil && r.file.Run.Answer == nil {
		plan, err := r.team.Plan(r.file.Tasks, &r.o)
		if err != nil {
			return nil, nil, err
		}
		output = plan.Output
	}
	run.SetTasks(&r.o, r.file)
	res, err = r.team.Replay(ctx, r.run.Run, &r.o)
	return res, output, err
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
func printVerdict(ctx context.Context, con *console.Console, r *repetition, odd []difference) error {
	if stop, ok := errors.AsType[*exit.Interrupted](context.Cause(ctx)); ok {
		return exit.Status(stop.Status())
	}
	want, got := r.counts()
	text := fmt.Sprintf("replayed %s of %s", format.Number(got), format.Plural(want, "prompt"))
	if want == got && len(odd) == 0 {
		con.Say("runteam: %s, equal to the byte", text)
		switch status := r.run.Status; {
		case r.run.History.End == nil:
			con.Say("         the run did not end: it is %s", terminal.CleanLine(status))
		case status != string(engine.StatusOK):
			con.Say("         the run ended with %s, and so does its replay", terminal.CleanLine(status))
		}
		return nil
	}
	con.Say("runteam: %s; the replay differs from the run", text)
	for i, o := range odd {
		if i == report.MaxFailures {
			con.Say("… and %d more", len(odd)-i)
			break
		}
		why := o.why
		if o.isPrompt && i == 0 {
			why = r.firstDifference(ctx, o.id)
		}
		con.Say("differs: %s: %s", terminal.CleanLine(o.title), terminal.Clean(why))
	}
	return exit.Status(exit.StatusFailed)
}

// counts returns how many prompts the result of the run consists of, and how many of them the
// replay built again.
func (r *repetition) counts() (want, got int) {
	known := map[record.Key]bool{}
	for _, x := range finalExchanges(r.run) {
		if known[x.Key] {
			continue
		}
		known[x.Key] = true
		if want++; r.seen[x.Key] {
			got++
		}
	}
	return want, got
}

// A difference is a task in which the replay differs from the run.
type difference struct {
	id       task.ID
	title    string
	why      string
	isPrompt bool // its prompt differs
}

// differences returns the tasks whose prompts differ or, if none does, those whose status differs.
func (r *repetition) differences(res *engine.Result) (list []difference) {
	add := func(id task.ID, title string) {
		o := difference{id: id, title: title, why: "its prompt differs", isPrompt: true}
		if stored := r.run.ByID[id]; stored != nil {
			if x := r.unreadable(stored); x != nil {
				o.why, o.isPrompt = "its prompt is the same, but its answer cannot be read: "+unreadableWhy(x), false
			}
		}
		list = append(list, o)
	}
	for i := range res.Tasks {
		if t := &res.Tasks[i]; t.Error != nil && t.Error.Root == "" && t.Error.Code == codes.Replay {
			add(t.ID, t.Title)
		}
	}
	for i := range res.Steps {
		if s := &res.Steps[i]; s.Error != nil && (s.Error.Code == codes.Replay || s.Error.Reason == codes.Replay) {
			add(r.stepID(res.Steps, i), string(s.Kind))
		}
	}
	if len(list) > 0 || r.run.History.End == nil {
		return list
	}
	for _, t := range res.Tasks {
		if stored := r.run.ByID[t.ID]; stored != nil && stored.Status != t.Status {
			list = append(list, difference{id: t.ID, title: t.Title, why: fmt.Sprintf("it is %s, and was %s", format.Status(t.Status), format.Status(stored.Status))})
		}
	}
	return list
}

// stepID returns the ID of the i-th step of the coordinator. Steps of one kind are distinguished
// by their order.
func (r *repetition) stepID(steps []engine.Step, i int) task.ID {
	skip := 0
	for _, s := range steps[:i] {
		if s.Kind == steps[i].Kind {
			skip++
		}
	}
	for _, t := range r.run.Tasks {
		if t.Step && t.Title == string(steps[i].Kind) {
			if skip == 0 {
				return t.ID
			}
			skip--
		}
	}
	return ""
}

// unreadable returns the exchange of a task whose prompt is equal and whose answer cannot be read;
// nil if there is none.
func (r *repetition) unreadable(t *journals.StoredTask) *record.AgentCall {
	for _, x := range t.Exchanges {
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
