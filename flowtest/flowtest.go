// Package flowtest decides whether a canary comes where it must not: it is for
// tests of teams, next to the spec that they hold to account.
//
// A test loads a spec, plants canaries (words that occur nowhere else) in its
// inputs and in the results of its tasks, says what it promises about them, and
// runs the team without a model:
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
// Every agent is stood in for by one that is as careless as a model can be with
// what it is not asked to keep apart: a result that is a free text repeats all
// canaries that stood in its prompt. So what leaks through another agent's words
// is found too. Run then looks for every canary, also encoded, in every prompt,
// result, event, log line and file, and fails for one that stands where neither
// the flow of the spec nor the reader's clearance lets it.
package flowtest

import (
	"log/slog"
	"os"
	"testing"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/spec"
)

// A Flow is a spec with canaries in it and promises about them. It is used from
// one goroutine; each [Flow.Run] is a run of its own.
type Flow struct {
	file     *specfile.File
	dir      string // for files of agents under test
	logs     *buffer
	logger   *slog.Logger
	agents   map[string]agent.Agent // that a test brought
	careless bool

	everywhere bool // plant in the results of all tasks, too

	canaries []*planted
	promises []promise
	faults   []string // what was asked for and makes no sense
}

// Load reads the spec at a path, as package spec does: a file, or the folder of
// a team.yaml. What is wrong with it ends the test.
func Load(t testing.TB, path string) *Flow {
	t.Helper()
	return LoadOptions(t, spec.Options{Path: path})
}

// LoadOptions does as Load does with everything that a spec may be read with:
// parameters, other inputs, another goal. A nil Lookup is the environment. No
// model is called, so no variable needs to be set or allowed.
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
	logs := new(buffer)
	return &Flow{
		file: file, dir: t.TempDir(), logs: logs, agents: map[string]agent.Agent{},
		logger: slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

// Agent puts an agent of yours in the place of the one that stands in for the
// agent of this name, or for the coordinator. Its prompts are watched like all
// others, and its endpoint stays that of the spec. What is planted in the
// results of its tasks is for it to write.
func (f *Flow) Agent(name string, a agent.Agent) {
	if !f.has(name) {
		f.fault("no agent is called %q", name)
		return
	}
	f.agents[name] = a
}

// Careless makes the agents repeat what they read also in every free text of a
// structured result, beside what is planted there: then only what a schema
// bounds keeps a canary from going on.
func (f *Flow) Careless() { f.careless = true }

// Logger returns the logger of the run, for an agent of yours. What is written
// to it, at any level, is looked through: no canary may ever stand there.
func (f *Flow) Logger() *slog.Logger { return f.logger }

// Dir returns a folder for what agents of yours write. Every file in it is looked
// through: a canary may stand there only if the caller of the run may see it.
func (f *Flow) Dir() string { return f.dir }

func (f *Flow) has(agent string) bool {
	for i := range f.file.Agents {
		if f.file.Agents[i].Member.Name == agent {
			return true
		}
	}
	return agent == coordinator && f.file.Coordinator != nil
}
