// Package spec reads spec files, which describe a team and its tasks or its goal.
//
// [Load] reads a spec file, in YAML or JSON, and every file that it names. [File.Build]
// makes the team, whose RunTasks and RunTeam run the file's tasks or its goal:
//
//	file, err := spec.Load(spec.Options{Path: "team.yaml", Lookup: os.LookupEnv})
//	if err != nil {
//		return err
//	}
//	tm, err := file.Build(nil)
//	if err != nil {
//		return err
//	}
//	res, err := tm.RunTasks(ctx, file.Tasks, &file.Run)
//
// An error of Load and Build lists everything that is wrong as [Problems], each
// with its line and column; [File.Locate] does the same for errors of the team.
// Load runs nothing, uses no network and reads no clock: the same files,
// options and environment give the same result.
package spec

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/llm/limit"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// Options say what to load. The zero value loads team.yaml, team.yml or
// team.json of the working directory.
type Options struct {
	Path  string    // a file, or a folder with a team.yaml, team.yml or team.json; "" means the working directory, "-" means Stdin
	Stdin io.Reader // read once for the path "-"; nil means empty

	Goal   string            // replaces the file's goal; its tasks are then not run. "" keeps the file's own
	Inputs map[string]string // path of a file for each input whose text it replaces, by the name of the input
	Params map[string]string // values of parameters that the file declares
	Models []string          // MODEL for every agent, or AGENT=MODEL for one; the last match counts

	// Lookup returns the variables of the environment that the file names as
	// ${NAME}, such as os.LookupEnv. Nil means that none is set. Variables that
	// begin with RUNTEAM_ are never used.
	Lookup func(name string) (string, bool)

	// AllowEnv lists what a variable may be sent to, as NAME=ORIGIN, NAME=file for
	// paths, or NAME=command:PROGRAM for an MCP server or an agent that is this
	// program. The keys of well-known providers may go to these providers, and
	// OPENAI_API_KEY to the endpoint that OPENAI_BASE_URL names; everything else
	// that is not listed is a problem.
	AllowEnv []string

	// Limits is where the rate limits are set that the file has for endpoints, such as a group that several files use, or
	// that shares its limits with other processes; nil means a group of its own.
	Limits *limit.Group

	// Offline is for programs that call no model: no variable needs to be set or
	// allowed, and a ${NAME} that is not set stays as it is.
	Offline bool
}

// A File is a spec file that was read, with defaults applied. Its methods are
// safe for concurrent use.
type File struct {
	Name     string          // of the team
	Tasks    []task.Spec     // in the order written; empty for a goal that the coordinator plans
	Goal     *team.Goal      // what RunTeam is asked for; nil if there is none, or if the file has tasks
	Run      team.RunOptions // inputs, messages, limits and output
	Warnings []Problem       // accepted but probably unintended, in the order of the text

	file   *specfile.File
	lookup func(string) (string, bool)
	limits *limit.Group
}

// Load reads a spec file and every file that it names. The error is of type
// [Problems]; it wraps fs.ErrNotExist if the file, or the team.yaml of the folder, does
// not exist. Names, references and labels are checked by [File.Build] and by
// the team. A file may have neither tasks nor a goal; its
// Tasks and Goal are then empty.
func Load(o Options) (*File, error) {
	allowed := make([]specfile.EnvUse, len(o.AllowEnv))
	for i, text := range o.AllowEnv {
		var err error
		if allowed[i], err = specfile.ParseEnvUse(text); err != nil {
			return nil, Problems{{Message: "AllowEnv: " + err.Error(), err: err}}
		}
	}
	f, err := specfile.Load(specfile.Options{
		Path: o.Path, Stdin: o.Stdin, Goal: o.Goal, Inputs: o.Inputs, Params: o.Params, Models: o.Models,
		Lookup: o.Lookup, AllowEnv: allowed, Offline: o.Offline,
	})
	if err != nil {
		return nil, problemsOf(err)
	}
	file := &File{
		Name: f.Name, Tasks: f.Tasks, Goal: (*team.Goal)(f.Goal), Run: runOptions(&f.Run), Warnings: problems(f.Warnings),
		file: f, lookup: o.Lookup, limits: cmp.Or(o.Limits, new(limit.Group)),
	}
	for base, bounds := range f.Limits {
		file.limits.Set(base, bounds)
	}
	return file, nil
}

// Build makes the team. It calls connect for each agent, and for the
// coordinator if there is a goal. A nil connect gives agents that call the
// models, and run the commands, that the file names. The error is of type [Problems] if the file is
// wrong; otherwise it is an error of connect.
func (f *File) Build(connect func(Agent) (team.Agent, error)) (*team.Team, error) {
	if connect == nil {
		connect = f.connect
	}
	tm, err := f.file.Build(func(a specfile.Agent) (team.Agent, error) { return connect(f.agent(a)) })
	if err != nil {
		return nil, problemsOf(err)
	}
	return (*team.Team)(tm), nil
}

// ConnectTools connects to the MCP servers whose tools agents have, which starts the programs
// that the file names, and reads the definitions of the tools. Call it before Build, unless
// the team only checks plans: without it, calls of these tools fail. Call Close after the
// last run. The error is of type [Problems].
func (f *File) ConnectTools(ctx context.Context) error { return problemsOf(f.file.Tools.Connect(ctx)) }

// Close ends the sessions with MCP servers that tasks shared.
func (f *File) Close() error { return f.file.Tools.Close() }

// Locate returns the [Problems] of an error of the team, with their places in
// the files. It returns every other error, and nil, unchanged.
func (f *File) Locate(err error) error { return problemsOf(f.file.Locate(err)) }

// A Problem is one thing that is wrong in a file, or probably unintended.
type Problem struct {
	File    string // with Line and Column, the place; empty for a problem of the options
	Line    int
	Column  int
	Message string // what is wrong
	Hint    string // what to write instead; may be empty
	Excerpt string // the lines around the place, with a caret, without secrets; may be empty

	err error // the condition; may be nil
}

// Error returns "file:line:column: message", and the excerpt and the hint on
// lines of their own.
func (p Problem) Error() string {
	return specfile.Problem{File: p.File, Line: p.Line, Column: p.Column, Message: p.Message, Hint: p.Hint, Excerpt: p.Excerpt}.Error()
}

// Unwrap returns the cause, for [errors.Is] and [errors.As]; it may be nil.
func (p Problem) Unwrap() error { return p.err }

// Problems is an error that lists everything that is wrong, file by file in the
// order of the text. Load and Build never return an empty one.
type Problems []Problem

// Error lists the problems one after the other.
func (p Problems) Error() string {
	texts := make([]string, len(p))
	for i, one := range p {
		texts[i] = one.Error()
	}
	return strings.Join(texts, "\n")
}

// Unwrap returns the problems one by one, for errors.Is and errors.As.
func (p Problems) Unwrap() []error {
	errs := make([]error, len(p))
	for i, one := range p {
		errs[i] = one
	}
	return errs
}

// problemsOf returns what a list of problems says as Problems, and another error unchanged.
func problemsOf(err error) error {
	if all, ok := errors.AsType[*specfile.Error](err); ok {
		return Problems(problems(all.Problems))
	}
	return err
}

func problems(all []specfile.Problem) []Problem {
	var out []Problem
	for _, p := range all {
		out = append(out, Problem{File: p.File, Line: p.Line, Column: p.Column, Message: p.Message, Hint: p.Hint, Excerpt: p.Excerpt, err: p.Err})
	}
	return out
}
