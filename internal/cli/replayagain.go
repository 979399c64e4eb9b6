package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// A repetition is a stored run that is made again from what the journal has.
type repetition struct {
	run  *storedRun
	file *specfile.File
	team *team.Team
	o    team.RunOptions

	mu   sync.Mutex          // guards what follows
	seen map[record.Key]bool // masked keys of the prompts that were built
}

// replay repeats a run without asking anybody.
func (a *app) replay(cmd *cobra.Command, r *replaying) error {
	j, err := r.open(cmd, a)
	if err != nil {
		return err
	}
	defer j.Close()
	k, err := a.stored(cmd.Context(), j, r.run)
	if err != nil {
		return err
	}
	again, err := a.repetition(cmd.Context(), r, k)
	if err != nil {
		return err
	}
	res, output, err := again.carry(cmd.Context())
	if err != nil {
		return again.file.Locate(err)
	}
	res.Command = k.Command
	again.complete(res)
	if a.settings.json() {
		err = a.apart(func() error { return a.printDocument(func(w io.Writer) error { return res.WriteJSON(w) }) })
	} else if text := answer(output, res); text != "" {
		err = a.apart(func() error { return a.printText(text) })
	}
	if err != nil {
		return err
	}
	return a.verdict(cmd.Context(), again, res)
}

// repetition prepares the team of a run, whose agents answer nothing.
func (a *app) repetition(ctx context.Context, r *replaying, k *storedRun) (*repetition, error) {
	m, file, err := r.specOf(ctx, a, k, false)
	if err != nil {
		return nil, err
	}
	m.restoreVersions(file)
	restoreModels(k, file)
	for i := range file.Agents { // no call is made, and the prices may have changed since
		file.Agents[i].Member.MaxTokenBudget, file.Agents[i].Member.MaxCostBudget = 0, 0
	}
	if c := file.Coordinator; c != nil {
		c.MaxTokenBudget, c.MaxCostBudget = 0, 0
	}
	t, err := build(file, m.silent(a.lookup))
	if err != nil {
		return nil, err
	}
	again := &repetition{run: k, file: file, team: t, o: file.Run, seen: map[record.Key]bool{}}
	again.o.RunID, again.o.Assert, again.o.Reuse, again.o.Timeout, again.o.MaxTokenBudget, again.o.MaxCostBudget = k.Run, nil, false, 0, 0, 0 // that it could begin is known
	if r.reveal {
		again.o.UserAccepts, again.o.Reveal = new(label.Secret), true
	}
	past := k.history
	past.Mask = again.mask
	again.o.Replay = &team.Replay{Past: &past, Without: m.Without, WithoutInputs: m.WithoutInputs}
	return again, nil
}

// silent connects agents that are not to be asked. They count as behind the
// endpoints that they had.
func (m *remembered) silent(lookup func(string) (string, bool)) func(specfile.Agent) (team.Agent, error) {
	return func(ag specfile.Agent) (team.Agent, error) {
		bases := append([]string{m.Endpoints[ag.Member.Name]}, m.Fallback[ag.Member.Name]...)
		if bases[0] == "" {
			bases, _ = endpointsOfAgent(ag, lookup)
		}
		return silentAgent(bases, nil), nil
	}
}

// mask makes of the key of a prompt what the journal has in its place, and
// remembers that it was asked for.
func (r *repetition) mask(key record.Key) record.Key {
	if r.run.history.Mask != nil {
		key = r.run.history.Mask(key)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[key] = true
	return key
}

// carry makes the run again.
func (r *repetition) carry(ctx context.Context) (res *team.Result, output []task.ID, err error) {
	if r.file.Goal != nil {
		res, err = r.team.RunTeam(ctx, *r.file.Goal, &r.o)
		return res, nil, err
	}
	if r.file.Run.Answer == nil {
		plan, err := r.team.Plan(r.file.Tasks, &r.o)
		if err != nil {
			return nil, nil, err
		}
		output = plan.Output
	}
	res, err = r.team.RunTasks(ctx, r.file.Tasks, &r.o)
	return res, output, err
}

// complete adds to a result what the journal knows and a run that asks nobody
// cannot: how a run ended that was ended.
func (r *repetition) complete(res *team.Result) {
	end := r.run.history.End
	if end == nil {
		return
	}
	if len(r.odd(res)) == 0 {
		res.Status = team.Status(end.Status)
	}
	for i := range res.Tasks {
		if m := &res.Tasks[i].Metrics; m.Attempts > 0 && m.End.IsZero() { // it was under way when the run was ended
			m.End = end.Time
		}
	}
}

// verdict says on stderr whether the run came again, and if not, where it is another one.
func (a *app) verdict(ctx context.Context, r *repetition, res *team.Result) error {
	if stop, ok := errors.AsType[*interrupted](context.Cause(ctx)); ok {
		return ended(stop.status())
	}
	want, got := r.counts()
	odd := r.odd(res)
	text := fmt.Sprintf("replayed %s of %s", number(got), plural(want, "prompt"))
	if want == got && len(odd) == 0 {
		a.say("runteam: %s, equal to the byte", text)
		switch status := r.run.Status; {
		case r.run.history.End == nil:
			a.say("         the run did not come to its end: it is %s", cleanLine(status))
		case status != string(team.StatusOK):
			a.say("         the run ended with %s, and so does its replay", cleanLine(status))
		}
		return nil
	}
	a.say("runteam: %s; the replay is not the run", text)
	for i, o := range odd {
		if i == maxFailures {
			a.say("… and %d more", len(odd)-i)
			break
		}
		why := o.why
		if o.another && i == 0 {
			why = r.firstDifference(ctx, o.id)
		}
		a.say("differs: %s: %s", cleanLine(o.title), clean(why))
	}
	return ended(statusFailed)
}

// counts returns how many prompts the result of the run is made of, and how many
// of them came again.
func (r *repetition) counts() (want, got int) {
	known := map[record.Key]bool{}
	for _, x := range r.run.lasting() {
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

// An oddity is a task of which the replay is not as the run was.
type oddity struct {
	id      task.ID
	title   string
	why     string
	another bool // its prompt is another one
}

// odd lists them: first whose prompts have no answer, then what came of it.
func (r *repetition) odd(res *team.Result) (list []oddity) {
	add := func(id task.ID, title string) {
		o := oddity{id: id, title: title, why: "its prompt is another one", another: true}
		if i, ok := r.run.byID[id]; ok {
			if x := r.unreadable(&r.run.tasks[i]); x != nil {
				o.why, o.another = "its prompt is the same, but the answer cannot be had: "+unreadableWhy(x), false
			}
		}
		list = append(list, o)
	}
	for i := range res.Tasks {
		if t := &res.Tasks[i]; t.Error != nil && t.Error.Root == "" && t.Error.Code == team.CodeReplay {
			add(t.ID, t.Title)
		}
	}
	for i := range res.Steps {
		if s := &res.Steps[i]; s.Error != nil && (s.Error.Code == team.CodeReplay || s.Error.Reason == team.CodeReplay) {
			add(r.stepID(res.Steps, i), string(s.Kind))
		}
	}
	if len(list) > 0 || r.run.history.End == nil {
		return list
	}
	for i := range res.Tasks {
		t := &res.Tasks[i]
		if at, ok := r.run.byID[t.ID]; ok && r.run.tasks[at].status != t.Status {
			list = append(list, oddity{id: t.ID, title: t.Title, why: fmt.Sprintf("it is %s, and was %s", statusText(t.Status), statusText(r.run.tasks[at].status))})
		}
	}
	return list
}

// stepID returns the id of the i-th step of the coordinator: of several of a kind,
// that which came in its place among them.
func (r *repetition) stepID(steps []team.Step, i int) task.ID {
	skip := 0
	for _, s := range steps[:i] {
		if s.Kind == steps[i].Kind {
			skip++
		}
	}
	for n := range r.run.tasks {
		if t := &r.run.tasks[n]; t.step && t.title == string(steps[i].Kind) {
			if skip == 0 {
				return t.id
			}
			skip--
		}
	}
	return ""
}

// unreadable returns the exchange of a task whose prompt came again and whose
// answer cannot be had; nil if there is none.
func (r *repetition) unreadable(t *storedTask) *record.AgentCall {
	for _, x := range t.exchanges {
		if r.seen[x.Key] && x.Completed() && unreadableWhy(x) != "" {
			return x
		}
	}
	return nil
}

// unreadableWhy says why an answer cannot be had; empty if it can.
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
