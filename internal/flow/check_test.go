package flow_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
)

// office is a graph with a bit of everything: an opaque input, one with a schema,
// an unknown one, a reader behind an endpoint, a result that is narrowed, one that
// is minimal, and one that is shown to the user.
func office() *flow.Graph {
	closed := func(names ...string) (func([]string) flow.Answer, func(string) flow.Answer, []string) {
		is := func(name string) flow.Answer {
			for _, n := range names {
				if strings.EqualFold(n, name) {
					return flow.Yes
				}
			}
			return flow.No
		}
		return func(path []string) flow.Answer { return is(path[len(path)-1]) }, is, names
	}
	maybePath := func([]string) flow.Answer { return flow.Maybe }
	g := &flow.Graph{
		Readers: []flow.Reader{
			{Kind: flow.Agent, Name: "reader"}, {Kind: flow.Agent, Name: "writer"}, {Kind: flow.Agent, Name: "clerk"},
			{Kind: flow.User, Name: "user"}, {Kind: flow.Endpoint, Name: "https://models.example/v1/"},
		},
		Tasks: []flow.Task{
			{ID: task.NewID("Read it"), Title: "Read it", Key: "read", Agent: 0, Endpoints: []int{4}},
			{ID: task.NewID("Write it"), Title: "Write it", Key: "write", Agent: 1},
			{ID: task.NewID("File it"), Title: "File it", Agent: 2},
		},
		Sources: []flow.Source{
			{Kind: handoff.Input, Name: "letter", Task: -1},
			{Kind: handoff.Input, Name: "case file", Task: -1},
			{Kind: handoff.Input, Name: "later", Task: -1, Has: maybePath},
			{Kind: handoff.Dependency, Name: "Read it", Task: 0},
			{Kind: handoff.Dependency, Name: "Write it", Task: 1},
			{Kind: handoff.Dependency, Name: "File it", Task: 2},
		},
		Edges: []flow.Edge{
			{Source: 0, Task: 0, Delivers: pick.Everything(), Rule: gate.RuleUses},
			{Source: 1, Task: 0, Delivers: only("/SSN", "/parties/*/name"), Rule: gate.RuleUses},
			{Source: 2, Task: 2, Delivers: except("/secret"), Rule: gate.RuleUses},
			{Source: 3, Task: 1, Delivers: except("ssn"), Rule: gate.RuleDependsOn, Line: "team.yaml:9"},
			{Source: 4, Task: 2, Delivers: pick.Everything(), Minimal: true, Rule: gate.RuleDependsOn},
		},
		Sights: []flow.Sight{{Source: 5, Reader: 3, Delivers: only("/number"), Rule: gate.RuleResult, Note: "declassified by file-to-user"}},
	}
	g.Sources[1].Has, g.Sources[1].Names, g.Sources[1].Members = closed("ssn", "parties", "name", "x/y")
	g.Sources[3].Has, g.Sources[3].Names, g.Sources[3].Members = closed("summary", "SSN")
	g.Sources[5].Has, g.Sources[5].Names, g.Sources[5].Members = closed("number")
	return g
}

func TestCheck(t *testing.T) {
	t.Parallel()
	table := office().Table()
	tests := []struct{ give, path, why string }{
		{"input letter never reaches reader", `input "letter" → task "Read it" → reader`, `reader receives input "letter", in task "Read it" (uses)`},
		{"input letter never reaches https://models.example/v1", `input "letter" → task "Read it" → https://models.example/v1/`, `https://models.example/v1/ receives input "letter", in task "Read it" (uses)`},
		{"input letter never reaches writer", "", ""},
		{
			"input letter never derives into writer", `input "letter" → task "Read it" → task "Write it" → writer`,
			`writer receives what task "Read it" wrote, which may reveal input "letter", in task "Write it" (dependsOn, team.yaml:9)`,
		},
		{"input letter never derives into clerk", "", ""}, // minimal: heading and status

		// a path counts with all above and beneath it that the edge may pass, and no other
		{"input case file/parties never reaches reader", `input "case file" → task "Read it" → reader`, `reader receives /parties of input "case file", in task "Read it" (uses)`},
		{"input case file/ssn never reaches reader", "", ""}, // grants compare exactly: /SSN is another
		{"input case file/x~1y never reaches reader", "", ""},
		{"input later/secret never reaches clerk", "", `no schema or input names /secret; only the run will show whether it exists`},
		{
			"input later/public never reaches clerk", `input "later" → task "File it" → clerk`,
			`clerk receives /public of input "later", in task "File it" (uses); only the run will show whether it exists`,
		},

		// a property may be spelt in any way that blocks take for it, and a grant may pass one of them
		{"Ssn never reaches reader", `input "case file" → task "Read it" → reader`, `reader receives property "Ssn" of input "case file", in task "Read it" (uses)`},
		{"ssn never reaches writer", "", ""},
		{
			"ssn never derives into writer", `input "case file" → task "Read it" → task "Write it" → writer`,
			`writer receives what task "Read it" wrote, which may reveal property "ssn" of input "case file", in task "Write it" (dependsOn, team.yaml:9)`,
		},
		{"name never reaches writer", "", ""},
		{"summary never reaches reader", "", `reader writes it, in task "Read it", which does not count`},
		{"summary never reaches writer", `result of "Read it" → task "Write it" → writer`, `writer receives property "summary" of result of "Read it", in task "Write it" (dependsOn, team.yaml:9)`},

		// the writer of a part knows it, and everything that it writes may reveal
		// it
		{"task read/SSN never reaches writer", "", ""},
		{
			"task read/SSN never derives into writer", `result of "Read it" → task "Read it" → task "Write it" → writer`,
			`writer receives what task "Read it" wrote, which may reveal /SSN of result of "Read it", in task "Write it" (dependsOn, team.yaml:9)`,
		},
		{`task "  write IT " never derives into clerk`, "", ""},
		{"task " + string(task.NewID("Read it")) + " never reaches clerk", "", ""},

		{"task File it never reaches user", `result of "File it" → user`, `user sees result of "File it" (result, declassified by file-to-user)`},
		{
			"input later never derives into user", `input "later" → task "File it" → user`,
			`user sees what task "File it" wrote, which may reveal input "later" (result, declassified by file-to-user)`,
		},
		{"task File it never reaches clerk", "", `clerk writes it, in task "File it", which does not count`},
	}
	for _, tt := range tests {
		t.Run(tt.give, func(t *testing.T) {
			t.Parallel()
			a, err := flow.ParseAssertion(tt.give)
			require.NoError(t, err)
			got, err := table.Check(a)
			require.NoError(t, err)
			require.Equal(t, tt.path, got.Path.String())
			require.Equal(t, tt.why, got.Why)
			require.Equal(t, tt.path == "", got.Holds)
		})
	}
}

func TestCheckResolvesSubjectsAndReaders(t *testing.T) {
	t.Parallel()
	table := office().Table()
	unknown, invalid := task.ErrUnknown, task.ErrInvalid
	tests := []struct {
		give, message, hint string
		err                 error
	}{
		{"input leter never reaches reader", `no input "leter"`, `did you mean "letter"?`, unknown},
		{"input x never reaches reader", `no input "x"`, "write one of letter, case file, later", unknown},
		{"input Letter never reaches reader", `no input "Letter"`, `did you mean "letter"?`, unknown},
		{"input letter/a never reaches reader", `input "letter" is a text, which has no paths`, "leave the path out", invalid},
		{"input case file/snn never reaches reader", `input "case file" can have nothing at /snn`, `did you mean "ssn"?`, unknown},
		{"input case file/x never reaches reader", `input "case file" can have nothing at /x`, "write a path that it has, or leave it out", unknown},
		{"task Raed it never reaches reader", `no task "Raed it"`, `did you mean "Read it"?`, unknown},
		{"task write/a never reaches reader", `result of "Write it" is a text, which has no paths`, "leave the path out", invalid},
		{"ssn never reaches raeder", `no reader "raeder"`, `did you mean "reader"?`, unknown},
		{"ssn never reaches reader/", `no reader "reader/"`, `did you mean "reader"?`, unknown},
		{"ssn never reaches tool:bash", `no tool "tool:bash"`, "none are defined", unknown},
		{"ssn never reaches coordinator", `no reader "coordinator"`, "write one of reader, writer, clerk, user, https://models.example/v1/", unknown},
	}
	for _, tt := range tests {
		t.Run(tt.give, func(t *testing.T) {
			t.Parallel()
			a, err := flow.ParseAssertion(tt.give)
			require.NoError(t, err)
			got, err := table.Check(a)
			require.Zero(t, got)
			require.ErrorIs(t, err, tt.err)
			var p task.Problem
			require.ErrorAs(t, err, &p)
			require.Equal(t, `assertion "`+tt.give+`"`, p.Subject)
			require.Equal(t, tt.message, p.Message)
			require.Equal(t, tt.hint, p.Hint)
		})
	}
}

// TestUnknownPropertiesAreErrors checks that a slip of the pen is not taken for a
// property that never flows. One source of which nothing is known makes every
// name possible.
func TestUnknownPropertiesAreErrors(t *testing.T) {
	t.Parallel()
	g := office()
	check := func(text string) (flow.Finding, error) {
		a, err := flow.ParseAssertion(text)
		require.NoError(t, err)
		return g.Table().Check(a)
	}
	got, err := check("sumary never reaches user")
	require.NoError(t, err)
	require.Equal(t, flow.Finding{Holds: true, Why: `no schema or input names property "sumary"; only the run will show whether it exists`}, got)

	g.Sources[2].Has = nil
	for text, hint := range map[string]string{
		"sumary never reaches user":   `did you mean "summary"?`,
		"letter never reaches user":   "write input letter for the input of this name",
		"write never reaches user":    "write task write for the result of this task",
		"zzzzzzzz never reaches user": `write a property of a schema or a structured input, or input NAME or task "TITLE"`,
	} {
		_, err := check(text)
		var p task.Problem
		require.ErrorAs(t, err, &p, text)
		require.ErrorIs(t, err, task.ErrUnknown)
		require.Equal(t, hint, p.Hint)
	}
}

// TestReaderListedTwiceIsOne gives an endpoint two spellings, of which only
// the first receives anything.
func TestReaderListedTwiceIsOne(t *testing.T) {
	t.Parallel()
	g := office()
	g.Readers = append(g.Readers, flow.Reader{Kind: flow.Endpoint, Name: "https://models.example/v1"})
	for _, name := range []string{"https://models.example/v1", "https://models.example/v1/"} {
		f, err := g.Table().Check(flow.Assertion{Subject: flow.Subject{Kind: flow.OfInput, Name: "letter"}, Claim: flow.Reaches, Reader: name})
		require.NoError(t, err)
		require.False(t, f.Holds)
	}
}

// TestErrorsReachTheirWriter shows a reader the error of a task that it does
// itself, which may contain a part of the result.
func TestErrorsReachTheirWriter(t *testing.T) {
	t.Parallel()
	g := office()
	g.Sources = append(g.Sources, flow.Source{Kind: handoff.Fault, Name: "Read it", Task: 0})
	g.Sights = append(g.Sights, flow.Sight{Source: 6, Reader: 0, Delivers: pick.Everything(), Rule: gate.RuleFault})
	subject := flow.Subject{Kind: flow.OfTask, Name: "read", Path: "/SSN"}
	f, err := g.Table().Check(flow.Assertion{Subject: subject, Claim: flow.Derives, Reader: "reader"})
	require.NoError(t, err)
	require.Equal(t, `reader sees what task "Read it" wrote, which may reveal /SSN of result of "Read it" (fault)`, f.Why)
}

func TestCheckRefusesMalformedAssertions(t *testing.T) {
	t.Parallel()
	table := office().Table()
	letter := flow.Subject{Kind: flow.OfInput, Name: "letter"}
	for _, a := range []flow.Assertion{
		{},
		{Subject: letter, Reader: "reader"},
		{Subject: letter, Claim: "ends", Reader: "reader"},
		{Subject: flow.Subject{Name: "ssn"}, Claim: flow.Reaches, Reader: "reader"},
		{Subject: flow.Subject{Kind: flow.OfInput, Name: "later", Path: "x"}, Claim: flow.Reaches, Reader: "reader"},
	} {
		got, err := table.Check(a)
		require.ErrorIs(t, err, task.ErrInvalid, "%+v", a)
		require.Zero(t, got)
	}
	_, err := table.Check(flow.Assertion{Subject: flow.Subject{Kind: flow.OfTask}, Claim: flow.Reaches, Reader: "reader"})
	require.ErrorIs(t, err, task.ErrUnknown)
	_, err = table.Check(flow.Assertion{Subject: flow.Subject{Kind: flow.OfInput, Name: "case file", Path: "/parties/**"}, Claim: flow.Reaches, Reader: "clerk"})
	require.NoError(t, err)
	g := office()
	g.Tasks[1].Key = "file it"
	_, err = g.Table().Check(flow.Assertion{Subject: flow.Subject{Kind: flow.OfTask, Name: "File it"}, Claim: flow.Reaches, Reader: "reader"})
	require.ErrorIs(t, err, task.ErrAmbiguous)
	require.ErrorContains(t, err, `"File it" names several tasks: "Write it" and "File it"`)
}

func TestWholeHasTwoForms(t *testing.T) {
	t.Parallel()
	table := office().Table()
	for _, name := range []string{"letter", "case file"} {
		subject := flow.Subject{Kind: flow.OfInput, Name: name}
		want, err := table.Check(flow.Assertion{Subject: subject, Claim: flow.Reaches, Reader: "reader"})
		require.NoError(t, err)
		subject.Path = "/**"
		got, err := table.Check(flow.Assertion{Subject: subject, Claim: flow.Reaches, Reader: "reader"})
		require.NoError(t, err)
		require.False(t, got.Holds)
		require.Equal(t, want, got)
	}
}

// TestPropertyMayBeDeepInAGrant checks that a grant of /facts/** counts
// for a name that may be beneath, and that a block of one place does not count
// for the name elsewhere.
func TestPropertyMayBeDeepInAGrant(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		delivers pick.Selection
		holds    bool
	}{
		{"beneath a grant", only("/facts/**"), false},
		{"beside a grant", only("/facts"), true},
		{"any member", only("/*"), false},
		{"spelt in another way", only("/x/\uff33SN/no"), false},
		{"spelt in another way, and blocked", must(only("/SSN").Except("/SSN")), true},
		{"another name", only("/ssns"), true},
		{"blocked in one place", except("/ssn"), false},
		{"blocked everywhere", except("ssn"), true},
		{"granted and blocked", must(only("/ssn", "/a").Except("SSN")), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := office()
			g.Sources[2].Names = func(string) flow.Answer { return flow.Yes }
			g.Edges[2].Delivers = tt.delivers
			got, err := g.Table().Check(flow.Assertion{Subject: flow.Subject{Kind: flow.Property, Name: "ssn"}, Claim: flow.Reaches, Reader: "clerk"})
			require.NoError(t, err)
			require.Equal(t, tt.holds, got.Holds)
		})
	}
}

func TestFindingsAsJSON(t *testing.T) {
	t.Parallel()
	a, err := flow.ParseAssertion("input letter never derives into writer")
	require.NoError(t, err)
	f, err := office().Table().Check(a)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, f.Path.Tasks())
	text, err := json.Marshal(f)
	require.NoError(t, err)
	require.JSONEq(t, `{"holds": false, "path": [
		{"kind": "input", "name": "letter", "index": 0}, {"kind": "task", "name": "Read it", "index": 0, "rule": "uses"},
		{"kind": "task", "name": "Write it", "index": 1, "rule": "dependsOn", "line": "team.yaml:9"}, {"kind": "agent", "name": "writer", "index": 1}],
		"why": "writer receives what task \"Read it\" wrote, which may reveal input \"letter\", in task \"Write it\" (dependsOn, team.yaml:9)"}`, string(text))
	var back flow.Finding
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, f, back)
}

// A title that several results have, such as that of a draft which judges read and that of what they
// accept, means all of them.
func TestAssertionIsAboutAllResultsOfATitle(t *testing.T) {
	t.Parallel()
	reaches := func(g *flow.Graph, path task.Path, reader string) bool {
		f, err := g.Table().Check(flow.Assertion{Subject: flow.Subject{Kind: flow.OfTask, Name: "write it", Path: path}, Claim: flow.Reaches, Reader: reader})
		require.NoError(t, err)
		return !f.Holds
	}
	g := office()
	g.Edges[4].Minimal = false
	require.False(t, reaches(g, "", "writer"))
	require.True(t, reaches(g, "", "clerk"))
	g.Tasks[0].Title = "Write it"
	require.True(t, reaches(g, "", "writer"), "the first task of the title reaches it")
	require.True(t, reaches(g, "", "clerk"), "and the second one reaches what it did")
	require.False(t, reaches(g, "", "user"))
	_, err := g.Table().Check(flow.Assertion{Subject: flow.Subject{Kind: flow.OfTask, Name: "Write it", Path: "/ssn"}, Claim: flow.Reaches, Reader: "writer"})
	require.ErrorIs(t, err, task.ErrInvalid, "one of them is a text")
	g.Tasks[2].Key = "write it"
	_, err = g.Table().Check(flow.Assertion{Subject: flow.Subject{Kind: flow.OfTask, Name: "Write it"}, Claim: flow.Reaches, Reader: "writer"})
	require.ErrorIs(t, err, task.ErrAmbiguous)
}
