package run

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/workdir"
)

// restore sets the flags of the stored run that are not given again. changed reports whether a flag is.
func (j *Job) restore(ctx context.Context, changed func(flag string) bool, con *console.Console, again *resumed) error {
	m := again.invocation
	if err := j.changeDir(con, m); err != nil {
		return err
	}
	own := j.SpecFlags
	was, err := m.Source()
	if missing := m.missingParams(); err != nil && (m.Missing[journal.GivenGoal] != "" || len(missing) == 0 || !j.covers(missing)) {
		return err
	}
	was.StoredOnly, was.Environment = j.StoredOnly, own.Environment
	was.StrictTools = was.StrictTools || own.StrictTools
	was.Results = again.journal.Result
	was.Conversation = func(ctx context.Context, t *record.SessionTurn) (plan.OfSession, error) {
		return engine.LoadConversation(ctx, again.journal, t)
	}
	was.Team, was.Orchestrator, was.Coordinator = cmp.Or(own.Team, was.Team), cmp.Or(own.Orchestrator, was.Orchestrator), cmp.Or(own.Coordinator, was.Coordinator)
	if err := confine(ctx, con, m, &was, &own); err != nil {
		return err
	}
	was.Inputs, was.Params = replacePairs(was.Inputs, own.Inputs), replacePairs(was.Params, own.Params)
	was.Models = append(slices.Clone(was.Models), own.Models...)
	if slices.ContainsFunc(own.Inputs, func(given string) bool { return strings.HasSuffix(given, "=-") }) && was.Path != "-" && !was.StoredOnly {
		was.Stored = slices.DeleteFunc(was.Stored, func(s specfile.StoredFile) bool { return s.Path == "-" }) // this command reads standard input again
	}
	j.SpecFlags = was
	if !changed("offline") {
		j.Offline = m.Offline || changed("script")
	}
	if j.Offline && !changed("script") {
		j.Script = m.Script
	}
	j.Concurrency, j.Budget = cmp.Or(j.Concurrency, m.MaxConcurrency), cmp.Or(j.Budget, m.MaxTokenBudget)
	j.Cost, j.allowWidening = cmp.Or(j.Cost, m.MaxCostBudget), m.AllowWidening
	if m.Reuse != nil {
		j.reuse.on, j.reuse.given = *m.Reuse, true
	}
	j.reuse.fresh = append(again.notCompleted(m.Fresh), j.reuse.fresh...)
	again.isChanged = len(own.Inputs)+len(own.Params)+len(own.Models)+len(own.Team)+len(own.Orchestrator)+len(own.Coordinator) > 0
	j.Command, j.resumed = again.stored.Info.Command, again
	return nil
}

// covers reports whether the flags set all of these parameters.
func (j *Job) covers(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(j.Params, func(given string) bool { return strings.HasPrefix(given, name+"=") })
	})
}

// replacePairs returns pairs of NAME=VALUE, where new ones replace old ones of the same name.
func replacePairs(old, new []string) []string {
	out := slices.DeleteFunc(slices.Clone(old), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.ContainsFunc(new, func(other string) bool { return strings.HasPrefix(other, name+"=") })
	})
	return append(out, new...)
}

// notCompleted returns those of the tasks of --fresh that have not completed since, without those
// whose unconfined command has begun: it runs again only if this command asks for it.
func (r *resumed) notCompleted(fresh []string) []string {
	done := accepted(&r.stored.History)
	var since time.Time // the process that had --fresh began
	if n := len(r.stored.History.Begins); n > 0 {
		since = r.stored.History.Begins[n-1].Time
	}
	return slices.DeleteFunc(slices.Clone(fresh), func(name string) bool {
		id, known := r.names.Find(name)
		ran := slices.ContainsFunc(r.stored.History.Log, func(e record.Entry) bool { return e.Asked != nil && e.Asked.Effect != "" && e.Asked.Task == id })
		return known && (ran || slices.ContainsFunc(done, func(x *record.AgentCall) bool { return x.From == "" && x.Task == id && !x.End.Before(since) }))
	})
}

// changeDir makes the working directory of the run that of the command, so that relative paths keep
// their meaning. If it no longer exists, neither do the files, and the copies are used.
func (j *Job) changeDir(con *console.Console, m *StoredInvocation) error {
	here, err := con.WorkDir.Getwd()
	if err != nil || here == m.Folder {
		return err
	}
	if err := j.makeAbsolute(here); err != nil {
		return err
	}
	if !con.WorkDir.IsDir(m.Folder) {
		j.StoredOnly = true
		return nil
	}
	folder, err := con.WorkDir.Abs(m.Folder)
	if err == nil {
		_, err = con.WorkDir.Stat(folder + string(filepath.Separator) + ".")
	}
	if err != nil {
		return exit.Errorf(exit.KindIO, "the working directory of the run, %s: %w", m.Folder, exit.WithoutPath(err))
	}
	con.WorkDir = workdir.Dir(folder)
	return nil
}

// makeAbsolute makes the paths of the flags of this command absolute.
func (j *Job) makeAbsolute(here string) error {
	for _, path := range []*string{&j.Script, &j.trace.File.Path, &j.trace.Anchor.Path, &j.trace.KeyFile, &j.events.File.Path, &j.save.Path, &j.Team, &j.Orchestrator, &j.Coordinator, &j.Environment.File} {
		if *path != "" && *path != "-" && !filepath.IsAbs(*path) {
			*path = filepath.Join(here, *path)
		}
	}
	given, err := flags.Pairs("input", "NAME=FILE", j.Inputs)
	if err != nil {
		return err
	}
	j.Inputs = nil
	for name, path := range given {
		if path != "-" && path != "" && !isText(path) && !source.IsResult(path) && !filepath.IsAbs(path) {
			path = filepath.Join(here, path)
		}
		j.Inputs = append(j.Inputs, name+"="+path)
	}
	slices.Sort(j.Inputs)
	return nil
}
