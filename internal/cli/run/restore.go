package run

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/spf13/cobra"
)

// restore sets the flags of the original run, except for those that are given again.
func (j *Job) restore(cmd *cobra.Command, con *console.Console, again *resumed) error {
	m := again.invocation
	if err := j.changeDir(m); err != nil {
		return err
	}
	own := j.SpecFlags
	was, err := m.Source()
	if lost := m.missingParams(); err != nil && (m.Missing[goalFile] != "" || len(lost) == 0 || !j.covers(lost)) {
		return err
	}
	was.StoredOnly, was.Environment = j.StoredOnly, own.Environment
	was.Results = again.journal.Result
	was.Team, was.Orchestrator, was.Coordinator = cmp.Or(own.Team, was.Team), cmp.Or(own.Orchestrator, was.Orchestrator), cmp.Or(own.Coordinator, was.Coordinator)
	if err := confine(cmd.Context(), con, m, &was, &own); err != nil {
		return err
	}
	was.Inputs, was.Params = replacePairs(was.Inputs, own.Inputs), replacePairs(was.Params, own.Params)
	was.Models = append(slices.Clone(was.Models), own.Models...)
	if slices.ContainsFunc(own.Inputs, func(given string) bool { return strings.HasSuffix(given, "=-") }) && was.Path != "-" && !was.StoredOnly {
		was.Stored = slices.DeleteFunc(was.Stored, func(s specfile.StoredFile) bool { return s.Path == "-" }) // standard input is given again
	}
	j.SpecFlags = was
	changed := cmd.Flags().Changed
	if !changed("offline") {
		j.Offline = m.Offline || changed("script")
	}
	if j.Offline && !changed("script") {
		j.Script = m.Script
	}
	j.Concurrency, j.Budget = cmp.Or(j.Concurrency, m.MaxConcurrency), cmp.Or(j.Budget, m.MaxTokenBudget)
	j.Cost = cmp.Or(j.Cost, m.MaxCostBudget)
	if m.Reuse != nil {
		j.reuse.on, j.reuse.given = *m.Reuse, true
	}
	j.reuse.fresh = append(again.notCompleted(m.Fresh), j.reuse.fresh...)
	again.isChanged = len(own.Inputs)+len(own.Params)+len(own.Models)+len(own.Team)+len(own.Orchestrator)+len(own.Coordinator) > 0
	j.Command, j.resumed = again.stored.Info.Command, again
	return nil
}

// covers reports whether flags give all parameters of a list.
func (j *Job) covers(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(j.Params, func(given string) bool { return strings.HasPrefix(given, name+"=") })
	})
}

// replacePairs returns pairs of NAME=VALUE with those of anew in the place of those
// of the same name.
func replacePairs(old, anew []string) []string {
	out := slices.DeleteFunc(slices.Clone(old), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.ContainsFunc(anew, func(other string) bool { return strings.HasPrefix(other, name+"=") })
	})
	return append(out, anew...)
}

// notCompleted returns the tasks that were to be run whatever there is and have not
// completed by now: those that have, have done so.
func (r *resumed) notCompleted(fresh []string) []string {
	done := LastCompleted(&r.stored.History)
	return slices.DeleteFunc(slices.Clone(fresh), func(name string) bool {
		id, known := r.names.Find(name)
		return known && slices.ContainsFunc(done, func(x *record.AgentCall) bool { return x.From == "" && x.Task == id })
	})
}

// changeDir makes the working directory of the run that of the command, so that
// paths lead where they did. If it is gone, so are the files, and the copies
// serve.
func (j *Job) changeDir(m *StoredInvocation) error {
	here, err := os.Getwd()
	if err != nil || here == m.Folder {
		return err
	}
	if err := j.makeAbsolute(here); err != nil {
		return err
	}
	if at, err := os.Stat(m.Folder); err != nil || !at.IsDir() {
		j.StoredOnly = true
		return nil
	}
	if err := os.Chdir(m.Folder); err != nil {
		return exit.Errorf(exit.KindIO, "the working directory of the run, %s: %w", m.Folder, exit.WithoutPath(err))
	}
	return nil
}

// makeAbsolute makes the paths that flags name lead from anywhere where they lead from here.
func (j *Job) makeAbsolute(here string) error {
	for _, path := range []*string{&j.Script, &j.trace.File.Path, &j.trace.Anchor.Path, &j.trace.KeyFile, &j.events.File.Path, &j.Team, &j.Orchestrator, &j.Coordinator, &j.Environment.File} {
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
		if path != "-" && path != "" && !source.IsResult(path) && !filepath.IsAbs(path) {
			path = filepath.Join(here, path)
		}
		j.Inputs = append(j.Inputs, name+"="+path)
	}
	slices.Sort(j.Inputs)
	return nil
}
