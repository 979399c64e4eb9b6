package plan_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// script returns an agent that runs a shell script, confined where that is possible.
func script(text string) *agent.Process {
	return &agent.Process{Command: "sh", Args: []string{"-c", text}}
}

// free returns an agent that runs a shell script unconfined.
func free(text string) *agent.Process {
	return &agent.Process{Command: "sh", Args: []string{"-c", text}, Confine: new(false)}
}

// requireConfinement skips a test on a system that cannot confine commands.
func requireConfinement(t testing.TB) {
	t.Helper()
	if script("").Unconfined() {
		t.Skip("this system cannot confine commands")
	}
}

func TestCommandsThatCannotWorkAreReportedBeforeTheRun(t *testing.T) {
	t.Parallel()
	argument := script("")
	argument.Input = agent.InputArgument
	for want, agents := range map[string][]plan.Member{
		`agent "a": its Agent cannot work: command "no-such-program"`:    {{Name: "a", Agent: &agent.Process{Command: "no-such-program"}}},
		`agent "a": an agent that is a command cannot call tools`:        {{Name: "a", Agent: script(""), Tools: []*tool.Tool{newTool(t, "lookup", tool.Options{})}}},
		`agent "a": the agent accepts confidential, and other users can`: {{Name: "a", Agent: argument, Accepts: label.Confidential}},
		`agent "a": what its unconfined command reads, up to confidential, can reach the unconfined commands of agent "b", which has only internal`: {
			{Name: "a", Agent: free(""), Accepts: label.Confidential}, {Name: "b", Agent: free("")},
		},
	} {
		_, err := newRoster(plan.Config{Agents: agents})
		require.ErrorContains(t, err, want)
	}
	_, err := newRoster(plan.Config{Agents: []plan.Member{{Name: "a", Agent: script("")}}, Coordinator: &plan.Coordinator{Agent: script("")}})
	require.ErrorContains(t, err, "a command cannot be the coordinator")

	r, err := newRoster(plan.Config{
		Agents: []plan.Member{{Name: "a", Agent: script("")}},
		Policy: &handoff.Policy{Rules: []handoff.PairRule{{From: "*", To: "a", Translate: &handoff.Translation{MaxTokens: 10, ByModel: true}}}},
	})
	require.NoError(t, err)
	_, err = r.plan([]task.Spec{{Title: "Read", Description: "?", Uses: []task.Use{{Name: "claim"}}}}, &plan.Options{Inputs: []plan.Input{{Name: "claim", Text: "x"}}})
	require.ErrorContains(t, err, `the policy has agent "a" summarize what it gets from "user", and a command cannot do that`)
}

func TestStrictToolsRefusesUnconfinedCommands(t *testing.T) {
	t.Parallel()
	requireConfinement(t)
	tasks := []task.Spec{{Title: "Read", Description: "?", Assignee: "a"}}
	bash, err := tool.New("shell", "Runs a command.", func(context.Context, struct{}) (string, error) { return "", nil }, tool.Options{Stateful: true, State: "machine"})
	require.NoError(t, err)
	server := func(p tool.Program) []*tool.Tool {
		f := *bash
		f.Name, f.State, f.Program = p.Name, "", &p
		return []*tool.Tool{&f}
	}
	for want, m := range map[string]plan.Member{
		"":                             {Agent: script("")},
		"pages: it is not confined":    {Agent: asksModel, Tools: server(tool.Program{Name: "pages", Reason: "it needs the network"})},
		"its command is not confined":  {Agent: free("")},
		`the commands of tool "shell"`: {Agent: asksModel, Tools: []*tool.Tool{bash}},
	} {
		m.Name = "a"
		r, err := newRoster(plan.Config{Agents: []plan.Member{m, {Name: "b", Agent: asksModel, Tools: server(tool.Program{Name: "files", Confined: true})}}})
		require.NoError(t, err)
		_, err = r.plan(tasks, &plan.Options{StrictTools: true})
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		_, err = r.plan(tasks, nil)
		require.NoError(t, err)
	}
}

// What one unconfined command reads can reach every other.
//
// Requirement: G52.
func TestUnconfinedCommandsAreConnected(t *testing.T) {
	t.Parallel()
	requireConfinement(t)
	bash, err := tool.New("shell", "Runs a command.", func(context.Context, struct{}) (string, error) { return "", nil }, tool.Options{Stateful: true, State: "machine"})
	require.NoError(t, err)
	tasks := []task.Spec{
		{Title: "Read", Description: "?", Assignee: "reader", Uses: []task.Use{{Name: "claim"}}},
		{Title: "Write", Description: "?", Assignee: "writer"},
	}
	for _, tt := range []struct {
		name           string
		reader, writer plan.Member
		assert         string
		broken         bool
	}{
		{"unconfined", plan.Member{Agent: free("")}, plan.Member{Agent: free("")}, "input claim never reaches tool:machine", true},
		{"derived", plan.Member{Agent: free("")}, plan.Member{Agent: free("")}, "input claim never derives into writer", true},
		{"only the reader", plan.Member{Agent: free("")}, plan.Member{Agent: script("")}, "input claim never derives into writer", false},
		{"only the writer", plan.Member{Agent: script("")}, plan.Member{Agent: free("")}, "input claim never derives into tool:machine", false},
		{"a tool", plan.Member{Agent: asksModel, Tools: []*tool.Tool{bash}, AllowUntrusted: []string{"shell"}}, plan.Member{Agent: free("")}, "input claim never derives into writer", true},
		{"a tool alone", plan.Member{Agent: asksModel, Tools: []*tool.Tool{bash}, AllowUntrusted: []string{"shell"}}, plan.Member{Agent: script("")}, "input claim never reaches tool:machine", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.reader.Name, tt.writer.Name = "reader", "writer"
			r, err := newRoster(plan.Config{Agents: []plan.Member{tt.reader, tt.writer}})
			require.NoError(t, err)
			p, err := r.plan(tasks, &plan.Options{Inputs: []plan.Input{{Name: "claim", Text: "x"}}, Assert: asserting(t, tt.assert)})
			require.NoError(t, err)
			require.Equal(t, tt.broken, p.Broken().Err() != nil, "%v", p.Broken().Err())
		})
	}
	r, err := newRoster(plan.Config{Agents: []plan.Member{{Name: "reader", Agent: script("")}, {Name: "writer", Agent: script("")}}})
	require.NoError(t, err)
	_, err = r.plan(tasks, &plan.Options{Inputs: []plan.Input{{Name: "claim", Text: "x"}}, Assert: asserting(t, "input claim never reaches tool:machine")})
	require.ErrorContains(t, err, "tool:machine") // there is none
}

// A store has files.
type store struct {
	record.Store
	paths []string
}

func (s *store) Private() []string { return s.paths }

// The commands of an agent may not read the folder of the journal, nor that of the workspaces, which have what other agents read.
func TestCommandsThatMayReadTheJournal(t *testing.T) {
	t.Parallel()
	requireConfinement(t)
	folder := t.TempDir()
	reader := script("")
	reader.Readable = []string{folder}
	r, err := newRoster(plan.Config{Agents: []plan.Member{{Name: "a", Agent: reader}}})
	require.NoError(t, err)
	tasks := []task.Spec{{Title: "Read", Description: "?"}}
	own, other := filepath.Join(folder, "sub"), filepath.Join(t.TempDir(), "journal.db")
	for _, paths := range [][]string{{own}, {other, own}} {
		_, err = r.plan(tasks, &plan.Options{Journal: &store{paths: paths}})
		require.ErrorContains(t, err, `agent "a": its commands may read `+folder+", and the journal has what other agents read in "+own)
	}
	_, err = r.plan(tasks, &plan.Options{Journal: &store{paths: []string{other}}})
	require.NoError(t, err)
}
