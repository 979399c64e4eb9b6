package cli

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// source is the spec that a command works on: where it stands, and what flags
// set in it.
type source struct {
	path         string
	team         string
	orchestrator string
	goal         goalFlag
	coordinator  string
	inputs       []string
	params       []string
	models       []string
	environment  environment
	noCalls      bool // no model is called, so nothing is sent

	stored     []specfile.StoredFile // stand in for files that are gone
	storedOnly bool                  // and for all others

	// results gives results of earlier runs; nil looks in the journal that a
	// command without --journal finds.
	results func(ctx context.Context, run, task string) (*envelope.Envelope, error)
}

// flags adds the flags that set something in a spec.
func (s *source) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&s.inputs, "input", nil, "take an input from a file, as `NAME=FILE`; - is standard input, run:RUN/TASK a result of an earlier run (repeatable)")
	f.StringArrayVar(&s.params, "param", nil, "set a parameter, as `K=V` (repeatable)")
	s.environment.flags(cmd)
	f.StringArrayVar(&s.models, "model", nil, "use this `MODEL` for all agents and the coordinator, or AGENT=MODEL for one (repeatable)")
}

// mergeFlags adds the flags for the files of the original beside a spec.
func (s *source) mergeFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.team, "team", "", "take the team from `FILE` instead")
	f.StringVar(&s.orchestrator, "orchestrator", "", "take the settings of the run from `FILE` instead")
}

// goalFlags adds the flags for a goal that the coordinator plans the tasks for.
func (s *source) goalFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var(&s.goal, "goal", "have the coordinator plan the tasks for `TEXT`, and answer it; - is standard input")
	f.StringVar(&s.coordinator, "coordinator", "", "take the coordinator's settings from `FILE` instead")
	complete(cmd, "goal", nil)
}

// load reads the spec. Nothing is run, and no network is used. From then on the
// environment of a is that which the spec was read with.
func (s *source) load(ctx context.Context, a *app) (*specfile.File, error) {
	lookup, err := await(ctx, func() (func(string) (string, bool), error) { return s.environment.lookup(a.lookup) })
	if err != nil {
		return nil, err
	}
	allowed, err := s.environment.allowed(a.lookup)
	if err != nil {
		return nil, err
	}
	a.lookup = lookup
	file, err := await(ctx, func() (*specfile.File, error) { return s.read(ctx, a, allowed) })
	return file, s.addConsentHints(err)
}

// read reads the spec with what may be sent of the environment.
func (s *source) read(ctx context.Context, a *app, allowed []specfile.EnvUse) (*specfile.File, error) {
	inputs, err := pairs("input", "NAME=FILE", s.inputs)
	if err != nil {
		return nil, err
	}
	params, err := pairs("param", "K=V", s.params)
	if err != nil {
		return nil, err
	}
	if slices.Contains(s.models, "") {
		return nil, usageError("--model is empty: write MODEL or AGENT=MODEL")
	}
	if err := s.readsOnce(inputs); err != nil {
		return nil, err
	}
	goal, err := s.goal.read(a.stdin)
	if err != nil {
		return nil, err
	}
	results := s.results
	if results == nil {
		results = (&journaling{}).results(a)
	}
	return specfile.Load(specfile.Options{
		Result: func(run, task string) (*envelope.Envelope, error) {
			e, err := results(ctx, run, task)
			if errors.Is(err, journal.ErrUnknownRun) {
				err = &missingRunError{run: run, task: task, err: err}
			}
			return e, err
		},
		Path: s.path, Stdin: a.stdin, Team: s.team, Orchestrator: s.orchestrator, Goal: goal, Coordinator: s.coordinator,
		Inputs: inputs, Params: params, Models: s.models, Stored: s.stored, StoredOnly: s.storedOnly,
		Lookup: a.lookup, AllowEnv: allowed, Trusted: func(path string, uses []specfile.EnvUse) bool { return a.isTrusted(path, uses) }, Offline: s.noCalls,
	})
}

// reads lists the files that were read, as far as flags name them.
func (s *source) reads(file *specfile.File) []string {
	paths := append(file.Reads(), file.Path, s.team, s.orchestrator, s.coordinator)
	inputs, _ := pairs("input", "", s.inputs) // load has refused what is wrong with them
	for _, path := range inputs {
		paths = append(paths, path)
	}
	return paths
}

// readsOnce refuses to take two things from standard input.
func (s *source) readsOnce(inputs map[string]string) error {
	var from []string
	for _, given := range []struct{ name, path string }{{"SPEC", s.path}, {"--team", s.team}, {"--orchestrator", s.orchestrator}, {"--coordinator", s.coordinator}} {
		if given.path == "-" {
			from = append(from, given.name)
		}
	}
	if s.goal.text == "-" && !s.goal.fixed {
		from = append(from, "--goal")
	}
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if inputs[name] == "-" {
			from = append(from, "--input "+name)
		}
	}
	if len(from) > 1 {
		return usageError("standard input can be read once: it is asked for by %s", strings.Join(from, " and "))
	}
	return nil
}

// pairs reads the values of a flag that sets names.
func pairs(flag, form string, given []string) (map[string]string, error) {
	all := make(map[string]string, len(given))
	for _, one := range given {
		name, value, ok := strings.Cut(one, "=")
		if !ok || name == "" {
			return nil, usageError("--%s %q: write %s", flag, one, form)
		}
		if _, twice := all[name]; twice {
			return nil, usageError("--%s %s stands twice", flag, name)
		}
		all[name] = value
	}
	return all, nil
}

// warnings returns what is worth a look in a spec and its plan, which may be
// nil, each place once.
func warnings(file *specfile.File, plan *team.Plan) []specfile.Problem {
	all := append([]specfile.Problem{}, file.Warnings...)
	if plan == nil || len(plan.Warnings) == 0 {
		return all
	}
	found, ok := errors.AsType[*specfile.Error](file.Locate(task.Problems(plan.Warnings)))
	if !ok {
		return all
	}
	for _, p := range found.Problems {
		if !slices.ContainsFunc(all, func(known specfile.Problem) bool { return p.Line > 0 && known.At() == p.At() }) {
			all = append(all, p)
		}
	}
	return all
}

// warn prints what is worth a look in a spec, unless the log level hides it.
func (a *app) warn(warnings []specfile.Problem) {
	if a.settings.level > slog.LevelWarn {
		return
	}
	for _, p := range warnings {
		p.Excerpt = ""
		text := "warning: " + p.Message
		if at := p.At(); at != "" {
			text = at + ": " + text
		}
		if p.Hint != "" {
			text += "; " + p.Hint
		}
		a.say("%s", clean(text))
	}
}
