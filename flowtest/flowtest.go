// Package flowtest tests that values of a spec reach only the agents that should see them.
//
// A test loads a spec, plants canaries (words that occur nowhere else) in its
// inputs and in the results of its tasks, asserts who sees them, and runs the team
// without a model:
//
//	func TestClaims(t *testing.T) {
//		f := flowtest.Load(t, "team.yaml")
//		iban := f.PlantInput("claim")
//		note := f.PlantResult("Extract facts", "/internal_notes")
//		f.Never(iban, "letters")
//		f.Reaches(note, "fraud")
//		f.Run(t)
//	}
//
// A stand-in replaces every agent. Its free text repeats all canaries of its prompt, as a
// model could, so that the test finds leaks through the words of another agent too. If its task
// has the tool grep or file_read, it reads its workspace first: folders, and files of other
// tasks. If the task has file_write and outputFiles, it writes a file with the canaries that it
// read and its own. In place of a command, it does both without tools. Other tools are called once,
// with all canaries in their arguments and in what a provider would need back with the calls, and do
// nothing. It answers so that loops run all their rounds and lists have three items, where the schemas
// allow that. [Flow.Run] then searches every prompt, what goes back to a provider, and every result,
// event, log line and file for every canary, also in encoded form. It fails if the flow of the spec or
// the clearance of the reader does not allow the canary there.
//
// A canary in a file of a folder is planted at its path:
//
//	source := f.PlantInput("repo", "/src/main.go")
//	f.Reaches(source, "developer", "reviewer")
//
// A canary in what an agent sends along edges is planted in the handoffs of its task:
//
//	tip := f.PlantHandoff("Report")
//	f.Reaches(tip, "editor")
//	f.Never(tip, "archive")
package flowtest

import (
	"log/slog"
	"os"
	"testing"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/listformat"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/spec"
	"github.com/runteam/runteam/tool"
)

// A Flow is a spec with canaries in it and assertions about them. It is not safe for
// concurrent use. Each [Flow.Run] is a separate run.
type Flow struct {
	file     *specfile.File
	dir      string // for files of agents under test
	logs     *buffer
	logger   *slog.Logger
	agents   map[string]agent.Agent // that a test brought
	tools    [][]*tool.Tool         // of each agent, as the spec has them
	careless bool

	everywhere bool // plant in the results of all tasks too

	canaries   []*canary
	assertions []assertion
	misuses    []string // wrong uses of this package
}

// Load reads the spec at a path: a file, or the folder of a team.yaml. If the spec is not
// valid, the test ends.
func Load(t testing.TB, path string) *Flow {
	t.Helper()
	return LoadOptions(t, spec.Options{Path: path})
}

// LoadOptions reads a spec with parameters, other inputs or another goal. A nil Lookup means
// the environment. No model is called, so no variable needs to be set or allowed.
func LoadOptions(t testing.TB, o spec.Options) *Flow {
	t.Helper()
	if o.Lookup == nil {
		o.Lookup = os.LookupEnv
	}
	file, err := specfile.Load(specfile.Options{
		Path: o.Path, Stdin: o.Stdin, Goal: o.Goal, Inputs: o.Inputs, Params: o.Params, Models: o.Models,
		Lookup: o.Lookup, Offline: true,
	})
	if err != nil {
		t.Fatalf("flowtest: %v", err)
	}
	for i := range file.Run.Inputs { // canaries have their places in JSON
		in := &file.Run.Inputs[i]
		if list, err := listformat.Parse(in.ListFormat, in.Text); err == nil && in.ListFormat != "" {
			in.Text, in.ListFormat = list.Canonical(), listformat.JSON
		}
	}
	logs, tools := new(buffer), make([][]*tool.Tool, len(file.Agents))
	for i := range file.Agents {
		tools[i] = file.Agents[i].Member.Tools
	}
	return &Flow{
		file: file, dir: t.TempDir(), logs: logs, agents: map[string]agent.Agent{}, tools: tools,
		logger: slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

// Agent replaces the stand-in of the agent of this name, or of the coordinator, by an
// agent of yours. Its prompts are searched like all others, and its endpoint is that of
// the spec. It must write the canaries that are planted in the results of its tasks. Its tools
// do what they do. In place of a command, an [agent.Process] works in the workspace of its task.
func (f *Flow) Agent(name string, a agent.Agent) {
	if !f.has(name) {
		f.misuse("unknown agent %q", name)
		return
	}
	f.agents[name] = a
}

// Careless makes the stand-ins repeat all canaries of their prompts in every free text of a
// structured result too. Then only the bounds of a schema stop a canary.
func (f *Flow) Careless() { f.careless = true }

// Logger returns the logger of the run, for an agent of yours. No canary may be in the log,
// at any level.
func (f *Flow) Logger() *slog.Logger { return f.logger }

// Dir returns a folder for the files that agents of yours write. A canary may be in such a
// file only if the user of the run may see it.
func (f *Flow) Dir() string { return f.dir }

func (f *Flow) has(agent string) bool {
	for i := range f.file.Agents {
		if f.file.Agents[i].Member.Name == agent {
			return true
		}
	}
	return agent == coordinator && f.file.Coordinator != nil
}
