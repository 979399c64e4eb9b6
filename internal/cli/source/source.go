// Package source reads the spec of a command, applies the flags that set something in it, and checks
// which variables of the environment it may send.
package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/workdir"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
)

// MainPath returns the path of the main file of the spec.
func (s *SpecFlags) MainPath() string {
	if s.Path == "" && s.Team != "" {
		return s.Team
	}
	return s.Path
}

// IsResult reports whether an --input names the result of an earlier run instead of a file.
func IsResult(given string) bool { return strings.HasPrefix(given, specfile.ResultPrefix) }

// Root returns the folder of the spec, and whether the spec exists.
func (s *SpecFlags) Root(dir workdir.Dir) (folder string, exists bool) {
	path := s.MainPath()
	if path == "-" {
		return "", false
	}
	if path == "" {
		path = "."
	}
	at, err := dir.Stat(path)
	if err != nil {
		return "", false
	}
	if !at.IsDir() {
		return filepath.Dir(path), true
	}
	_, exists = specfile.InFolder(dir, path)
	return path, exists
}

// SpecFlags name the spec of a command, and hold the flags that set something in it.
type SpecFlags struct {
	Path         string
	Team         string
	Orchestrator string
	Goal         GoalFlag
	Coordinator  string
	Inputs       []string
	Params       []string
	Models       []string
	Environment  EnvironmentFlags
	StrictTools  bool // a command that is not confined is an error
	NoCalls      bool // no model is called, so no variable is sent to one
	CallsTools   bool // tools are called, even without calls of models
	AnyAllow     bool // MCP servers need no allow

	// Names are what messages call the flags, by the field of [specfile.Options]. Nil means their
	// names on the command line.
	Names map[string]string

	Stored     []specfile.StoredFile // replace files that no longer exist
	StoredOnly bool                  // no file is read

	TurnFlags

	// Results returns results of earlier runs. Nil means those of the default journal.
	Results func(ctx context.Context, run, task string) (*envelope.Envelope, error)
}

// TurnFlags are about a spec that is read for the turns of a session.
type TurnFlags struct {
	Chat  bool   // it is read for them
	Agent string // answers; empty means as the spec says

	// Turn is the turn that the run is; nil if it is none. Conversation returns what the run needs of
	// the other turns.
	Turn         *record.SessionTurn
	Conversation func(ctx context.Context, t *record.SessionTurn) (plan.OfSession, error)
}

// Argument takes SPEC from the arguments of a command.
func (s *SpecFlags) Argument(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		s.Path = args[0]
	}
	return flags.AtMost(1, "one SPEC")(cmd, args)
}

// AddTo adds the flags that set something in a spec.
func (s *SpecFlags) AddTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&s.Inputs, "input", nil, "take an input from a file, as `NAME=FILE`; - is standard input, run:RUN/TASK a result of an earlier run (repeatable)")
	f.StringArrayVar(&s.Params, "param", nil, "set a parameter, as `K=V` (repeatable)")
	s.AddSettingsTo(cmd)
}

// AddSettingsTo adds the flags of AddTo that do not depend on what the spec declares.
func (s *SpecFlags) AddSettingsTo(cmd *cobra.Command) {
	f := cmd.Flags()
	s.Environment.AddTo(cmd)
	f.BoolVar(&s.StrictTools, "strict-tools", false, "refuse commands and MCP servers that are not confined to their workspace")
	f.StringArrayVar(&s.Models, "model", nil, "use this `MODEL` for all agents and the coordinator, or AGENT=MODEL for one (repeatable)")
}

// AddMergeFlagsTo adds the flags for further files of the original.
func (s *SpecFlags) AddMergeFlagsTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.Team, "team", "", "take the team from `FILE`")
	f.StringVar(&s.Orchestrator, "orchestrator", "", "take the settings of the run from `FILE`")
}

// AddGoalFlagsTo adds the flags for a goal.
func (s *SpecFlags) AddGoalFlagsTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var(&s.Goal, "goal", "have the coordinator plan the tasks for `TEXT`, and answer it; - is standard input")
	s.AddCoordinatorFlagTo(cmd)
	flags.Complete(cmd, "goal", nil)
}

// AddCoordinatorFlagTo adds --coordinator.
func (s *SpecFlags) AddCoordinatorFlagTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.Coordinator, "coordinator", "", "take the coordinator's settings from `FILE`")
}

// Load reads the spec. It runs nothing and uses no network. It sets the environment of con to the one
// of the spec, with the variables of --env-file.
func (s *SpecFlags) Load(ctx context.Context, con *console.Console) (*specfile.File, error) {
	file, err := readWith(ctx, con, s, specfile.LoadContext)
	if err == nil {
		file.Run.StrictTools = s.StrictTools
		err = s.loadTurn(ctx, file)
	}
	return file, s.addConsentHints(err)
}

// loadTurn makes a file that of a turn of a session, if the run is one.
func (s *SpecFlags) loadTurn(ctx context.Context, file *specfile.File) (err error) {
	if s.Turn == nil {
		return nil
	}
	if file.Run.OfSession, err = s.Conversation(ctx, s.Turn); err != nil {
		return err
	}
	SetTurn(file)
	return nil
}

// SetTurn sets the tasks or the goal of a file to those of the turn that its run is.
func SetTurn(file *specfile.File) {
	engine.SetTurn(&file.Run)
	file.Tasks, file.Goal = file.Run.Tasks, file.Run.Answer
	file.Run.Tasks, file.Run.Answer = nil, nil
}

// Declare reads what may be given to the spec; see [specfile.Declare].
func (s *SpecFlags) Declare(ctx context.Context, con *console.Console) (*specfile.Declared, error) {
	own := *con
	d, err := readWith(ctx, &own, s, specfile.Declare)
	return d, s.addConsentHints(err)
}

// readWith reads the spec in a way, and sets the environment of con to the one of the spec.
func readWith[T any](ctx context.Context, con *console.Console, s *SpecFlags, read func(context.Context, specfile.Options) (T, error)) (none T, err error) {
	lookup, err := files.Await(ctx, func() (func(string) (string, bool), error) { return s.Environment.lookup(con) })
	if err != nil {
		return none, err
	}
	allowed, err := s.Environment.allowed(con.LookupEnv)
	if err != nil {
		return none, err
	}
	con.LookupEnv = lookup
	return files.Await(ctx, func() (T, error) {
		o, err := s.options(ctx, con, allowed)
		if err != nil {
			return none, err
		}
		return read(ctx, o)
	})
}

// options returns the options of the spec with the variables that it may send.
func (s *SpecFlags) options(ctx context.Context, con *console.Console, allowed []specfile.EnvUse) (o specfile.Options, err error) {
	inputs, params, goal, err := s.Given(con.Stdin)
	if err != nil {
		return o, err
	}
	if slices.Contains(s.Models, "") {
		return o, exit.Usagef("--model is empty: write MODEL or AGENT=MODEL")
	}
	results := s.Results
	if results == nil {
		results = (&journals.Flags{}).Results(con)
	}
	return specfile.Options{
		Result: func(run, task string) (*envelope.Envelope, error) {
			e, err := results(ctx, run, task)
			if _, unknown := errors.AsType[*journal.UnknownRunError](err); unknown {
				err = fmt.Errorf("it is the result of task %q in run %s, which is not in the journal: it may have been removed by gc", terminal.CleanLine(task), terminal.CleanLine(run))
			}
			return e, err
		},
		Dir: con.WorkDir, Path: s.Path, Stdin: con.Stdin, Team: s.Team, Orchestrator: s.Orchestrator, Goal: goal, Coordinator: s.Coordinator, Chat: s.Chat, Agent: s.Agent,
		Inputs: inputs, Params: params, Models: s.Models, Stored: s.Stored, StoredOnly: s.StoredOnly,
		Lookup: con.LookupEnv, AllowEnv: allowed, Trusted: func(path string, uses []specfile.EnvUse) bool { return IsTrusted(con, path, uses) }, Offline: s.NoCalls,
		CallsTools: s.CallsTools, Unlisted: s.AnyAllow,
		Names: messageNames(s.Names),
	}, nil
}

// Given returns what the flags give a spec: the files of inputs and the values of parameters, by name, and the goal, which is
// empty without --goal. A goal on standard input is read.
func (s *SpecFlags) Given(stdin io.Reader) (inputs, params map[string]string, goal string, err error) {
	if inputs, err = flags.Pairs("input", "NAME=FILE", s.Inputs); err != nil {
		return nil, nil, "", err
	}
	if params, err = flags.Pairs("param", "K=V", s.Params); err != nil {
		return nil, nil, "", err
	}
	if err = s.readsOnce(inputs); err != nil {
		return nil, nil, "", err
	}
	goal, err = s.Goal.read(messageNames(s.Names)["Goal"], stdin)
	return inputs, params, goal, err
}

// messageNames returns what messages call the options that flags set: names, or as on the command line if they are nil.
func messageNames(names map[string]string) map[string]string {
	if names == nil {
		return optionNames
	}
	return names
}

// optionNames are what messages about a spec call the options that flags set.
var optionNames = map[string]string{
	"Team": "--team", "Orchestrator": "--orchestrator", "Goal": "--goal", "Coordinator": "--coordinator", "Agent": "--agent",
	"Inputs": "--input", "Params": "--param", "Models": "--model", "UserAccepts": "run with --reveal on a terminal",
}

// Reads returns the paths of the files that were read.
func (s *SpecFlags) Reads(file *specfile.File) []string {
	paths := append(file.Reads(), file.Path, s.Team, s.Orchestrator, s.Coordinator)
	inputs, _ := flags.Pairs("input", "", s.Inputs) // Load has reported errors
	for _, path := range inputs {
		paths = append(paths, path)
	}
	return paths
}

// readsOnce refuses to read standard input twice.
func (s *SpecFlags) readsOnce(inputs map[string]string) error {
	var from []string
	for _, given := range []struct{ name, path string }{{"SPEC", s.Path}, {"--team", s.Team}, {"--orchestrator", s.Orchestrator}, {"--coordinator", s.Coordinator}} {
		if given.path == "-" {
			from = append(from, given.name)
		}
	}
	if s.Goal.Text == "-" && !s.Goal.Literal {
		from = append(from, "--goal")
	}
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if inputs[name] == "-" {
			from = append(from, "--input "+name)
		}
	}
	if len(from) > 1 {
		return exit.Usagef("standard input can be read only once: leave it to one of %s", strings.Join(from, " and "))
	}
	return nil
}

// Warnings returns the warnings about a spec and its plan, which may be nil, one for each place.
func Warnings(file *specfile.File, plan *engine.Plan) []specfile.Problem {
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
