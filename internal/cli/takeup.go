package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/specfile"
)

// takeUp asks for a run as it was asked for, but for what flags say anew.
func (j *job) takeUp(cmd *cobra.Command, a *app, again *resumption) error {
	m := again.memory
	if err := j.moveTo(m); err != nil {
		return err
	}
	own := j.source
	was, err := m.source()
	if lost := m.missingParams(); err != nil && (m.missing[goalText] != "" || len(lost) == 0 || !j.covers(lost)) {
		return err
	}
	was.storedOnly, was.environment = j.storedOnly, own.environment
	was.results = again.journal.Result
	was.team, was.orchestrator, was.coordinator = cmp.Or(own.team, was.team), cmp.Or(own.orchestrator, was.orchestrator), cmp.Or(own.coordinator, was.coordinator)
	if err := a.confine(cmd.Context(), m, &was, &own); err != nil {
		return err
	}
	was.inputs, was.params = replaced(was.inputs, own.inputs), replaced(was.params, own.params)
	was.models = append(slices.Clone(was.models), own.models...)
	if slices.ContainsFunc(own.inputs, func(given string) bool { return strings.HasSuffix(given, "=-") }) && was.path != "-" && !was.storedOnly {
		was.stored = slices.DeleteFunc(was.stored, func(s specfile.StoredFile) bool { return s.Path == "-" }) // somebody writes it again
	}
	j.source = was
	changed := cmd.Flags().Changed
	if !changed("offline") {
		j.offline = m.Offline || changed("script")
	}
	if j.offline && !changed("script") {
		j.script = m.Script
	}
	j.concurrency, j.budget = cmp.Or(j.concurrency, m.MaxConcurrency), cmp.Or(j.budget, m.MaxTokenBudget)
	j.cost = cmp.Or(j.cost, m.MaxCostBudget)
	if m.Reuse != nil {
		j.reuse.on, j.reuse.given = *m.Reuse, true
	}
	j.reuse.fresh = append(again.undone(m.Fresh), j.reuse.fresh...)
	again.anew = len(own.inputs)+len(own.params)+len(own.models)+len(own.team)+len(own.orchestrator)+len(own.coordinator) > 0
	j.command, j.again = again.stored.Info.Command, again
	return nil
}

// covers reports whether flags give all parameters of a list.
func (j *job) covers(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(j.params, func(given string) bool { return strings.HasPrefix(given, name+"=") })
	})
}

// replaced returns pairs of NAME=VALUE with those of anew in the place of those
// of the same name.
func replaced(old, anew []string) []string {
	out := slices.DeleteFunc(slices.Clone(old), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.ContainsFunc(anew, func(other string) bool { return strings.HasPrefix(other, name+"=") })
	})
	return append(out, anew...)
}

// undone returns the tasks that were to be run whatever there is and have not
// completed by now: those that have, have done so.
func (r *resumption) undone(fresh []string) []string {
	done := latest(&r.stored.History)
	return slices.DeleteFunc(slices.Clone(fresh), func(name string) bool {
		id, known := r.names.find(name)
		return known && slices.ContainsFunc(done, func(x *record.AgentCall) bool { return x.From == "" && x.Task == id })
	})
}

// moveTo makes the working directory of the run that of the command, so that
// paths lead where they did. If it is gone, so are the files, and the copies
// serve.
func (j *job) moveTo(m *remembered) error {
	here, err := os.Getwd()
	if err != nil || here == m.Folder {
		return err
	}
	if err := j.anchor(here); err != nil {
		return err
	}
	if at, err := os.Stat(m.Folder); err != nil || !at.IsDir() {
		j.storedOnly = true
		return nil
	}
	if err := os.Chdir(m.Folder); err != nil {
		return &fault{kind: kindIO, err: fmt.Errorf("the working directory of the run, %s: %w", m.Folder, plainly(err))}
	}
	return nil
}

// anchor makes the paths that flags name lead from anywhere where they lead from here.
func (j *job) anchor(here string) error {
	for _, path := range []*string{&j.script, &j.trace.file.path, &j.trace.anchor.path, &j.trace.keyFile, &j.events.file.path, &j.team, &j.orchestrator, &j.coordinator, &j.environment.file} {
		if *path != "" && *path != "-" && !filepath.IsAbs(*path) {
			*path = filepath.Join(here, *path)
		}
	}
	given, err := pairs("input", "NAME=FILE", j.inputs)
	if err != nil {
		return err
	}
	j.inputs = nil
	for name, path := range given {
		if path != "-" && path != "" && !isResult(path) && !filepath.IsAbs(path) {
			path = filepath.Join(here, path)
		}
		j.inputs = append(j.inputs, name+"="+path)
	}
	slices.Sort(j.inputs)
	return nil
}
