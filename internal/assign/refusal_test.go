package assign_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// desk is three agents of whom each lacks something.
func desk() []assign.Agent {
	return []assign.Agent{
		{Name: "reader", Capabilities: []string{"OCR"}, Tools: []string{"scan"}, Provider: "openai", Clearance: label.Confidential, Produces: label.Public},
		{Name: "writer", Capabilities: []string{"letters", "editing"}, Backend: "process", Produces: label.Internal, OutputTags: []string{"letter"}, MaxSession: time.Hour},
		{Name: "clerk", Tools: []string{"scan", "print"}, Clearance: label.Public, Produces: label.Public, MaxSession: time.Minute},
	}
}

// refused assigns one task, and returns the problem that it is.
func refused(t *testing.T, s task.Spec, level label.Classification, agents []assign.Agent) task.Problem {
	t.Helper()
	_, err := assign.Tasks(graphOf(t, []task.Spec{s}), []label.Classification{level}, agents, "")
	problems, ok := errors.AsType[task.Problems](err)
	require.True(t, ok, "%v", err)
	require.Len(t, problems, 1)
	require.NoError(t, naming.CheckLine(err.Error()))
	return problems[0]
}

func TestRefusalsNameTheFilterAndTheNearest(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		give    task.Spec
		level   label.Classification
		at      string
		message string
		hint    string
	}{
		{"capability", task.Spec{Requires: &task.Requires{Capabilities: []string{"ocr", "sql"}}}, label.Public, "requires",
			`no agent has the capability "sql"`, "add it to an agent's capabilities, or drop it from requiredCapabilities"},
		{"misspelt capability", task.Spec{Requires: &task.Requires{Capabilities: []string{"editting"}}}, label.Public, "requires",
			`no agent has the capability "editting"`, `did you mean "editing"?`},
		{"tool", task.Spec{Requires: &task.Requires{Tools: []string{"Print"}}}, label.Public, "requires",
			`no agent has the tool "Print"`, `did you mean "print"?`},
		{"backend", task.Spec{Requires: &task.Requires{Backend: "container"}}, label.Public, "requires",
			`no agent has the backend "container"`, "leave requiredBackend out, or write one of process"},
		{"provider", task.Spec{Requires: &task.Requires{Provider: "openia"}}, label.Public, "requires",
			`no agent has the provider "openia"`, `did you mean "openai"?`},
		{"clearance", task.Spec{}, label.Secret, "assignee",
			`no agent is cleared for secret: the highest is confidential, "reader"; no agent produces secret: the highest is internal, "writer"`,
			"set accepts: secret on an agent, or remove the secret context"},
		{"production", task.Spec{}, label.Confidential, "assignee",
			`no agent produces confidential: the highest is internal, "writer"`, "set produces: confidential on an agent, or remove the confidential context"},
		{"tag", task.Spec{RequiredTags: []string{"facts"}}, label.Public, "assignee",
			`no agent declares the tag "facts"`, "add it to an agent's outputTags, or drop it from requiredTags"},
		{"both", task.Spec{RequiredTags: []string{"leter"}, Requires: &task.Requires{Tools: []string{"fax"}}}, label.Public, "requires",
			`no agent has the tool "fax"; no agent declares the tag "leter"`, "leave requiredTools out, or write one of scan, print"},
		{"together", task.Spec{Requires: &task.Requires{Tools: []string{"scan"}, Capabilities: []string{"letters"}}}, label.Internal, "requires",
			`no agent has all that the task needs: "writer" comes nearest, but lacks the tool "scan"`, "let one agent have it all, or ask for less"},
		{"together, without requires", task.Spec{RequiredTags: []string{"letter"}, Timeout: 2 * time.Hour}, label.Public, "assignee",
			`no agent has all that the task needs: "reader" comes nearest, but does not declare the tag "letter"`, "let one agent have it all, or ask for less"},
		{"several lacks", task.Spec{Requires: &task.Requires{Tools: []string{"print"}, Backend: "process", Provider: "openai"}, RequiredTags: []string{"letter"}, Timeout: 3 * time.Minute}, label.Internal, "requires",
			`no agent has all that the task needs: "writer" comes nearest, but lacks the tool "print" and lacks the provider "openai"`, "let one agent have it all, or ask for less"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.give.Title, tt.give.Description = "Ask", "Do it."
			require.Equal(t, task.Problem{
				Pointer: "/tasks/0/" + tt.at, Subject: `task "Ask"`, Message: tt.message, Hint: tt.hint, Err: assign.ErrNoAgent,
			}, refused(t, tt.give, tt.level, desk()))
		})
	}
}

func TestRefusalsNameEveryMissingRequirement(t *testing.T) {
	t.Parallel()
	ask := task.Spec{Title: "Ask", Description: "Do it.", Timeout: 2 * time.Hour, RequiredTags: []string{"letter"}}
	require.Equal(t, `no agent keeps a session for 2h0m0s: the longest is 1h0m0s, "writer"`, refused(t, ask, label.Internal, desk()[1:]).Message)

	// each meets something that the other lacks, so that no filter alone excludes all
	// agents
	two := desk()[:2]
	two[0].MaxSession, two[1].MaxSession = 0, time.Hour
	two[1].Clearance, two[0].OutputTags = label.Public, []string{"letter"}
	require.Equal(t, `no agent has all that the task needs: "reader" comes nearest, but produces at most public, not internal`,
		refused(t, ask, label.Internal, two).Message)
	two[0].OutputTags = nil
	ask.Requires = &task.Requires{Capabilities: []string{"letters"}, Backend: "process"}
	require.Equal(t, `no agent has all that the task needs: "writer" comes nearest, but is cleared for public, not for internal and keeps a session for 1h0m0s, not for 2h0m0s`,
		refused(t, ask, label.Internal, two).Message)
}

func TestNoAgents(t *testing.T) {
	t.Parallel()
	p := refused(t, specs("Ask")[0], label.Public, nil)
	require.Equal(t, "/tasks/0/assignee", p.Pointer)
	require.EqualError(t, p, `task "Ask": there are no agents: add one with a name`)
}

func TestAllProblemsAreReportedInTaskOrder(t *testing.T) {
	t.Parallel()
	s := specs("a", "b@writer", "c@wirter", "d@writer", "e<a", "f")
	s[1].Requires = &task.Requires{Capabilities: []string{"Letters"}}
	s[3].Requires = &task.Requires{Tools: []string{"print"}, Capabilities: []string{"letters"}, Provider: "openai"}
	s[4].Requires = &task.Requires{Tools: []string{"fax"}}
	labels := []label.Classification{label.Secret, label.Secret, 0, 0, 0, 0} // of the second the handshake speaks
	g := graphOf(t, s)
	for _, strategy := range strategies {
		_, err := assign.Tasks(g, labels, desk(), strategy)
		require.ErrorIs(t, err, assign.ErrNoAgent)
		require.ErrorIs(t, err, assign.ErrRequires)
		require.ErrorIs(t, err, assign.ErrUnknown)
		require.EqualError(t, err, strings.Join([]string{
			`task "a": no agent is cleared for secret: the highest is confidential, "reader"; no agent produces secret: the highest is internal, "writer": set accepts: secret on an agent, or remove the secret context`,
			`task "c": unknown agent "wirter": did you mean "writer"?`,
			`task "d": agent "writer" lacks the tool "print" and lacks the provider "openai": give it to the agent, or require less`,
			`task "e": no agent has the tool "fax": leave requiredTools out, or write one of scan, print`,
		}, "\n"))
	}
	err := assign.Check(g, desk())
	problems, ok := errors.AsType[task.Problems](err)
	require.True(t, ok)
	require.Len(t, problems, 2)
	require.Equal(t, "/tasks/2/assignee", problems[0].Pointer)
	require.ErrorIs(t, problems[0], assign.ErrUnknown)
	require.Equal(t, "/tasks/3/requires", problems[1].Pointer)
	require.ErrorIs(t, problems[1], assign.ErrRequires)
}

func TestCheckNamesAgentsWithTheRequirement(t *testing.T) {
	t.Parallel()
	s := specs("a@writer")
	s[0].Requires = &task.Requires{Tools: []string{"scan"}}
	require.EqualError(t, assign.Check(graphOf(t, s), desk()),
		`task "a": agent "writer" lacks the tool "scan": "reader" has all that it requires: name that one, or none`)
	s[0].Assignee = "clerk"
	require.NoError(t, assign.Check(graphOf(t, s), desk()))
	require.EqualError(t, assign.Check(graphOf(t, specs("a@Reader")), nil), `task "a": unknown agent "Reader": write the name of an agent, or none`)
	require.NoError(t, assign.Check(graphOf(t, nil), nil))
}

func TestOfTwoEqualNamesTheFirstCounts(t *testing.T) {
	t.Parallel()
	agents := named("a", "a")
	agents[1].Tools = []string{"scan"}
	s := specs("1@a")
	require.NoError(t, assign.Check(graphOf(t, s), agents))
	s[0].Requires = &task.Requires{Tools: []string{"scan"}}
	require.ErrorIs(t, assign.Check(graphOf(t, s), agents), assign.ErrRequires)
}

func TestUntitledTasksHaveNumbers(t *testing.T) {
	t.Parallel()
	g, err := graph.New([]task.Task{{ID: "1"}, {ID: "2", Spec: task.Spec{Requires: &task.Requires{Capabilities: []string{"\x1b[31m\n"}}}}})
	require.NoError(t, err)
	_, err = assign.Tasks(g, make([]label.Classification, 2), named("a"), "")
	require.ErrorContains(t, err, `task 2: no agent has the capability "\x1b[31m\n"`)
}

// TestBlankRequirementsMatchNothing covers tasks that were read back and not checked.
func TestBlankRequirementsMatchNothing(t *testing.T) {
	t.Parallel()
	for _, blank := range []task.Requires{{Capabilities: []string{""}}, {Tools: []string{" "}}, {Backend: " "}, {Provider: "\t"}} {
		g, err := graph.New([]task.Task{{ID: "1", Spec: task.Spec{Requires: &blank}}})
		require.NoError(t, err)
		_, err = assign.Tasks(g, make([]label.Classification, 1), []assign.Agent{{Name: "a", Capabilities: []string{" "}, Tools: []string{""}}}, "")
		require.ErrorIs(t, err, assign.ErrNoAgent)
	}
}

// TestManyRefusalsAreQuick has more tasks without an eligible agent than could each
// be compared with every word that agents have.
func TestManyRefusalsAreQuick(t *testing.T) {
	t.Parallel()
	agents := make([]assign.Agent, 200)
	for i := range agents {
		agents[i].Name = fmt.Sprintf("agent %d", i)
		for k := range 20 {
			agents[i].Capabilities = append(agents[i].Capabilities, fmt.Sprintf("capability number %d", 20*i+k))
		}
	}
	s := make([]task.Spec, 10_000)
	for i := range s {
		s[i] = task.Spec{Title: fmt.Sprint("task ", i), Description: "Do it."}
		if s[i].Requires = (&task.Requires{Capabilities: []string{fmt.Sprintf("capabilty number %d", i)}}); i%2 == 1 {
			s[i].Assignee, s[i].Requires = fmt.Sprintf("agnet %d", i), nil
		}
	}
	_, err := assign.Tasks(graphOf(t, s), make([]label.Classification, len(s)), agents, "")
	problems, _ := errors.AsType[task.Problems](err)
	require.Len(t, problems, len(s))
	require.Equal(t, `did you mean "capability number 0"?`, problems[0].Hint)
	require.Equal(t, "add it to an agent's capabilities, or drop it from requiredCapabilities", problems[len(s)-2].Hint)
	require.Equal(t, "write the name of an agent, or none", problems[len(s)-1].Hint)
}
