package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/team"
)

// reusing says what of earlier runs may be taken in the place of calls.
type reusing struct {
	on    bool
	given bool // by --reuse
	fresh []string
}

// freshFlag adds the flag that asks agents again.
func (r *reusing) freshFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&r.fresh, "fresh", nil, "run `TASK`, by title or key, whatever answers there are (repeatable)")
}

func (r *reusing) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&r.on, "reuse", false, "take answers of earlier runs in the journal where an agent would be asked the very same (default: as the spec says)")
	r.freshFlag(cmd)
}

// asked returns what --reuse says; nil means as the spec does.
func (r *reusing) asked() *bool {
	if !r.given {
		return nil
	}
	return &r.on
}

// settle applies the flags to a spec, and refuses what contradicts it or what
// it does not know. A run that is resumed has answers of its own.
func (r *reusing) settle(file *specfile.File, keeps bool, again *resumption) error {
	if r.given {
		file.Run.Reuse = r.on
	}
	switch {
	case file.Run.Reuse && !keeps && r.given:
		return usageError("--reuse takes answers from the journal, and with --no-journal there is none: take one of them back")
	case file.Run.Reuse && !keeps:
		return usageError("the spec says reuse: true, which takes answers from the journal, and with --no-journal there is none: take --no-journal back, or add --reuse=false")
	}
	names := taskNamesOf(file)
	if again != nil && file.Goal != nil && len(names) == 0 {
		names = again.names
	}
	if err := r.resolve(file, names); err != nil {
		return err
	}
	if len(r.fresh) > 0 && !file.Run.Reuse && again == nil {
		return usageError("--fresh %s: every task is run anyway; --fresh makes exceptions from --reuse", r.fresh[0])
	}
	return nil
}

// resolve has the run take the tasks of --fresh, and refuses one that is not
// there. Of a goal that is not planned nobody knows the tasks yet.
func (r *reusing) resolve(file *specfile.File, names taskNames) error {
	if len(names) == 0 {
		file.Run.Fresh = r.fresh
		return nil
	}
	file.Run.Fresh = nil
	for _, name := range r.fresh {
		id, ok := names.find(name)
		if !ok {
			return usageError("--fresh %q: no task is called that: %s", name, names.suggest(name))
		}
		file.Run.Fresh = append(file.Run.Fresh, string(id))
	}
	return nil
}

// tellReuse says it if a script is not what it was in the last run of the same
// spec: nothing that it answered is taken.
func (a *app) tellReuse(ctx context.Context, j *job, file *specfile.File, told *chronicle) error {
	if told == nil || j.again != nil || !file.Run.Reuse || !j.offline {
		return nil
	}
	list, err := told.journal.Runs(ctx)
	i := slices.IndexFunc(list, func(s journal.Summary) bool { return s.Name == file.Name })
	if err != nil || i < 0 {
		return unloaded(whyEnded(ctx, err))
	}
	last, err := told.journal.Load(ctx, list[i].Run)
	if err != nil {
		return unloaded(whyEnded(ctx, err))
	}
	if was, err := remember(&last.Info); err == nil { // else another program made it
		if why := j.scriptChange(&was.invocation, file); why != "" && was.Offline {
			a.say("reuse:   %s: what it answers is asked again", why)
		}
	}
	return nil
}

// A saving is what was not asked for again.
type saving struct {
	tasks, steps int
	tokens       int
}

// savingsOf counts what a run took from others.
func savingsOf(res *team.Result) (s saving) {
	for i := range res.Tasks {
		if t := &res.Tasks[i]; t.Reused != "" && t.Reused != res.RunID {
			s.tasks++
			s.tokens += t.Saved.InputTokens + t.Saved.OutputTokens
		}
	}
	for i := range res.Steps {
		if t := &res.Steps[i]; t.Reused != "" && t.Reused != res.RunID {
			s.steps++
			s.tokens += t.Saved.InputTokens + t.Saved.OutputTokens
		}
	}
	return s
}

// String is "3 tasks reused, 12,300 tokens saved"; empty if nothing was.
func (s saving) String() string {
	if s.tasks+s.steps == 0 {
		return ""
	}
	text := plural(s.tasks, "task") + " reused"
	if s.steps > 0 {
		text = plural(s.tasks, "task") + " and " + plural(s.steps, "step") + " of the coordinator reused"
	}
	if s.tokens > 0 {
		text += fmt.Sprintf(", %s saved", plural(s.tokens, "token"))
	}
	return text
}

// shortRun is enough of the id of a run to name it.
func shortRun(id string) string {
	const enough = 8
	return id[:min(len(id), enough)]
}
