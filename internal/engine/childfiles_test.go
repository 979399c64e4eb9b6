package engine_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A workshop is a team whose lead has others work on files of its workspace. Ann makes some of these in a task before.
type workshop struct {
	made  []change            // by ann
	lead  [][]llm.ToolCall    // of each turn of the lead
	work  map[string][]change // what the others do, by goal
	claim label.Classification
	files []string // that the edges grant; all unless set

	transfers bool // the lead transfers its conversation to other
	rules     []handoff.PairRule

	mu    sync.Mutex
	seen  map[string]map[string]string // the files that were in a workspace, by what is said of the call
	asked map[string][]string          // what models were sent, by agent
	calls map[string]int               // of the tool, by what is said of the call
}

// works returns the call with which an agent changes files. by tells it apart from others.
func works(by string, changes ...change) llm.ToolCall {
	in := workArguments{By: by, Changes: [][2]string{}}
	for _, c := range changes {
		in.Changes = append(in.Changes, [2]string{c.name, c.text})
	}
	return call("work", jsonOf(in))
}

// workArguments are the arguments of the tool.
type workArguments struct {
	By      string      `json:"by"`
	Changes [][2]string `json:"changes"`
}

// passes returns the call with which the lead passes files with a goal.
func passes(to, goal string, files ...string) llm.ToolCall {
	in := map[string]any{"to": to, "goal": goal}
	if len(files) > 0 {
		in["files"] = files
	}
	return call("delegate_to_agent", jsonOf(in))
}

func jsonOf(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// tool returns the tool with which agents work on files.
func (w *workshop) tool(t require.TestingT) *tool.Tool {
	o := tool.Options{Effect: tool.Workspace, Accepts: label.Secret, Produces: new(label.Public)}
	return &tool.Tool{Name: "work", Parameters: json.RawMessage(`{"type":"object"}`), Options: o, ReadsWorkspace: true, Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
		var in workArguments
		require.NoError(t, json.Unmarshal(c.Arguments, &in))
		root, err := c.Workspace()
		require.NoError(t, err)
		w.mu.Lock()
		defer w.mu.Unlock()
		of := &worker{seen: filesOf(t, root)}
		w.seen[in.By] = of.seen
		w.calls[in.By]++
		for _, p := range in.Changes {
			of.apply(t, root, change{p[0], p[1]})
		}
		return tool.Result{Text: "worked"}, nil
	}}
}

// member returns an agent of the team.
func (w *workshop) member(name string, work *tool.Tool) engine.Member {
	model := byTurn(func(turn int, r llm.Request) llm.Response {
		var text strings.Builder
		for _, m := range r.Messages {
			text.WriteString(string(m.Role) + ": " + m.Text + "\n")
		}
		w.mu.Lock()
		w.asked[name] = append(w.asked[name], text.String())
		w.mu.Unlock()
		steps := w.lead
		if name == "ann" {
			steps = [][]llm.ToolCall{{works("ann", w.made...)}}
		}
		for goal, changes := range w.work {
			if name != "ann" && strings.Contains(text.String(), goal) {
				steps = [][]llm.ToolCall{{works(goal, changes...)}}
			}
		}
		if name == "other" && w.transfers {
			steps = [][]llm.ToolCall{{works("holder")}}
		}
		if turn <= len(steps) {
			return llm.Response{ToolCalls: steps[turn-1]}
		}
		return llm.Response{Text: "done by " + name}
	})
	m := engine.Member{Name: name, Tools: []*tool.Tool{work}, AllowUntrusted: []string{"work"}}
	m.Agent = agent.New(model, agent.Options{MaxTurns: 20})
	if name == "lead" {
		m.Spawn = &plan.Spawning{Files: w.files}
	}
	if name == "fixer" && w.claim > label.Internal {
		own := m.Agent
		m.Produces = &w.claim
		m.Agent = agent.Func(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			r, err := own.Run(ctx, p)
			r.Claim = &w.claim
			return r, err
		})
	}
	return m
}

// run runs the tasks of ann and of the lead.
func (w *workshop) run(t require.TestingT, o *engine.RunOptions) *engine.Result {
	w.seen, w.asked, w.calls = map[string]map[string]string{}, map[string][]string{}, map[string]int{}
	if w.files == nil {
		w.files = []string{"**"}
	}
	config := engine.Config{Policy: &handoff.Policy{Rules: w.rules}}
	work := w.tool(t)
	for _, name := range []string{"ann", "lead", "fixer", "other"} {
		config.Agents = append(config.Agents, w.member(name, work))
	}
	for _, to := range []string{"fixer", "other"} {
		config.Edges = append(config.Edges, handoff.Edge{From: "lead", To: to, Delegate: true, Transfer: w.transfers, Files: w.files})
	}
	tm, err := engine.New(config)
	require.NoError(t, err)
	res, err := start(context.Background(), tm, []task.Spec{
		{Title: "Make", Description: "Make.", Assignee: "ann", OutputFiles: []string{"**"}},
		{Title: "Lead", Description: "Lead.", Assignee: "lead", OutputFiles: []string{"**"}, DependsOn: []task.Ref{filesFrom("Make")}},
	}, o)
	require.NoError(t, err)
	return res
}

// A child gets the files that its parent has and names, as the parent has them, and what it changes of them comes back.
func TestFilesArePassedWithAGoal(t *testing.T) {
	t.Parallel()
	w := &workshop{
		made: []change{{"src/a.txt", "a"}, {"src/b.txt", "b"}, {"src/gone.txt", "g"}, {"src/kept.txt", "k"}, {"doc.txt", "d"}},
		lead: [][]llm.ToolCall{
			{works("lead 1", change{"src/own.txt", "1"}, change{"src/b.txt", "b2"}, change{"src/gone.txt", ""}, change{"other.txt", "o"})},
			{passes("fixer", "mend it", "src/**", "doc.txt"), works("lead 2")},
			{works("lead 3")},
			{passes("other", "look at it", "**")},
		},
		work: map[string][]change{
			"mend it":    {{"src/a.txt", "fixed"}, {"src/own.txt", "2"}, {"src/kept.txt", ""}, {"src/new.txt", "n"}, {"elsewhere.txt", "e"}, {"doc.txt", "changed"}},
			"look at it": {},
		},
		files: []string{"src/**", "other.txt"},
	}
	res := w.run(t, &engine.RunOptions{})
	require.NoError(t, res.Err())
	require.Equal(t, map[string]string{"src/a.txt": "a", "src/b.txt": "b2", "src/kept.txt": "k", "src/own.txt": "1"}, w.seen["mend it"])
	after := map[string]string{"src/a.txt": "fixed", "src/b.txt": "b2", "src/own.txt": "2", "src/new.txt": "n", "other.txt": "o", "doc.txt": "d"}
	require.Equal(t, after, w.seen["lead 2"], "a later call of the turn")
	require.Equal(t, after, w.seen["lead 3"])
	require.Contains(t, w.asked["lead"][3], `status complete; what it changed is in your workspace: data`)
	require.Equal(t, map[string]string{"src/a.txt": "fixed", "src/b.txt": "b2", "src/own.txt": "2", "src/new.txt": "n", "other.txt": "o"}, w.seen["look at it"])
	require.Equal(t, map[string]string{"src/a.txt": "fixed", "src/b.txt": "b2", "src/own.txt": "2", "src/new.txt": "n", "other.txt": "o"}, of(t, res, "Lead").OutputFiles)
}

// A copy of an agent gets files too, and may not need any to make some.
func TestFilesArePassedToACopy(t *testing.T) {
	t.Parallel()
	spawns := func(goal string, files ...string) llm.ToolCall {
		return call("spawn_agent", jsonOf(map[string]any{"goal": goal, "tools": []string{"work"}, "files": files}))
	}
	w := &workshop{
		made:  []change{{"a.txt", "a"}, {"b.txt", "b"}},
		lead:  [][]llm.ToolCall{{spawns("mend it", "a.txt"), spawns("write it", "none.txt")}, {works("lead")}},
		work:  map[string][]change{"mend it": {{"a.txt", "fixed"}}, "write it": {{"new.txt", "n"}}},
		rules: []handoff.PairRule{{From: "ann", To: "fixer", Mode: handoff.Minimal}},
	}
	require.NoError(t, w.run(t, &engine.RunOptions{}).Err())
	require.Equal(t, map[string]string{"a.txt": "a"}, w.seen["mend it"])
	require.Empty(t, w.seen["write it"])
	require.Equal(t, map[string]string{"a.txt": "fixed", "b.txt": "b", "new.txt": "n"}, w.seen["lead"])
}

// Without a grant there is no argument, and a call without files passes none and returns none.
func TestFilesAreNotPassedWithoutAGrant(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files []string
		call  llm.ToolCall
		want  string
	}{
		"no grant":      {[]string{}, passes("fixer", "mend it", "**"), `Invalid arguments: unknown "files"`},
		"no argument":   {[]string{"**"}, passes("fixer", "mend it"), "done by fixer"},
		"no such glob":  {[]string{"**"}, passes("fixer", "mend it", "[x"), `Call refused: files: "[x" is not a valid glob`},
		"above":         {[]string{"**"}, passes("fixer", "mend it", "../x"), `Call refused: files: "../x" matches no file`},
		"the whole one": {[]string{"**"}, passes("fixer", "mend it", "/etc/passwd"), `Call refused: files: "/etc/passwd" matches no file`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &workshop{made: []change{{"a.txt", "a"}}, lead: [][]llm.ToolCall{{tt.call}, {works("lead")}}, work: map[string][]change{"mend it": {{"a.txt", "fixed"}}}, files: tt.files}
			require.NoError(t, w.run(t, &engine.RunOptions{}).Err())
			require.Contains(t, w.asked["lead"][1], tt.want)
			require.Empty(t, w.seen["mend it"])
			require.Equal(t, map[string]string{"a.txt": "a"}, w.seen["lead"])
		})
	}
}

// Each file keeps its producer on the way to a child: what the policy withholds of it is absent, also of what another child
// changed, and what the parent changed is its own.
//
// Requirement: G36.
func TestPassedFilesKeepTheirRules(t *testing.T) {
	t.Parallel()
	minimal := func(from, to string) handoff.PairRule {
		return handoff.PairRule{From: from, To: to, Mode: handoff.Minimal}
	}
	w := &workshop{
		made: []change{{"a.txt", "a"}, {"b.txt", "b"}},
		lead: [][]llm.ToolCall{
			{works("lead 1", change{"b.txt", "mine"}, change{"own.txt", "1"})},
			{passes("fixer", "mend it", "**")},
			{works("lead 2")},
			{passes("other", "look at it", "**")},
		},
		work:  map[string][]change{"mend it": {{"own.txt", "2"}, {"c.txt", "c"}, {"secret/d.txt", "d"}, {"a.txt", "unseen"}}, "look at it": {}},
		rules: []handoff.PairRule{minimal("ann", "fixer"), minimal("fixer", "other"), {From: "fixer", To: "lead", Mode: handoff.Full, Block: []task.Path{"/secret"}}},
	}
	res := w.run(t, &engine.RunOptions{})
	require.NoError(t, res.Err())
	require.Equal(t, map[string]string{"b.txt": "mine", "own.txt": "1"}, w.seen["mend it"])
	require.Equal(t, map[string]string{"a.txt": "a", "a.call_2_1.txt": "unseen", "b.txt": "mine", "own.txt": "2", "c.txt": "c"}, w.seen["lead 2"], "the child was not given a.txt")
	require.Equal(t, map[string]string{"a.txt": "a", "b.txt": "mine"}, w.seen["look at it"])
}

// What differs in a file that is hidden from a child makes no difference to it.
//
// Requirement: G36.
func TestHiddenFilesMakeNoDifferenceToAChild(t *testing.T) {
	t.Parallel()
	run := func(hidden string) *workshop {
		w := &workshop{
			made:  []change{{"hidden.txt", hidden}, {"seen.txt", "s"}},
			lead:  [][]llm.ToolCall{{works("lead", change{"own.txt", "1"})}, {passes("fixer", "mend it", "**"), passes("other", "look at it", "seen.txt")}},
			work:  map[string][]change{"mend it": {{"own.txt", "2"}}, "look at it": {{"seen.txt", "2"}}},
			rules: []handoff.PairRule{{From: "ann", To: "fixer", Mode: handoff.Full, Block: []task.Path{"/hidden.txt"}}},
		}
		require.NoError(t, w.run(t, &engine.RunOptions{RunID: "r"}).Err())
		return w
	}
	one, two := run("one"), run("another, and longer\n")
	require.NotEqual(t, one.seen["lead"], two.seen["lead"])
	require.Equal(t, map[string]string{"own.txt": "1", "seen.txt": "s"}, one.seen["mend it"])
	for _, by := range []string{"mend it", "look at it"} {
		require.Equal(t, one.seen[by], two.seen[by])
	}
	for _, who := range []string{"fixer", "other"} {
		require.Equal(t, withoutFences(one.asked[who]), withoutFences(two.asked[who]))
		require.Contains(t, one.asked[who][0], "## Files of the agent that gave you the goal")
		require.NotContains(t, strings.Join(one.asked[who], ""), "hidden")
	}
}

// withoutFences replaces the random words of fences.
func withoutFences(texts []string) []string {
	return strings.Split(fenceWord.ReplaceAllString(strings.Join(texts, "\x00"), "word"), "\x00")
}

// What a child returns above the clearance of its parent stays away.
func TestFilesAboveTheCallerStayAway(t *testing.T) {
	t.Parallel()
	w := &workshop{
		made: []change{{"a.txt", "a"}}, lead: [][]llm.ToolCall{{passes("fixer", "mend it", "**")}, {works("lead")}},
		work: map[string][]change{"mend it": {{"a.txt", "fixed"}, {"b.txt", "b"}}}, claim: label.Confidential,
	}
	require.NoError(t, w.run(t, &engine.RunOptions{}).Err())
	require.Equal(t, map[string]string{"a.txt": "a"}, w.seen["mend it"])
	require.Equal(t, map[string]string{"a.txt": "a"}, w.seen["lead"])
	require.NotContains(t, w.asked["lead"][1], "what it changed")
}

// Children that change one file at the same time both keep their version, and a later child gets both.
func TestChildrenThatChangeOneFile(t *testing.T) {
	t.Parallel()
	w := &workshop{
		made: []change{{"a.txt", "a"}, {"d", "d"}},
		lead: [][]llm.ToolCall{{passes("fixer", "mend it", "**"), passes("other", "improve it", "**")}, {works("lead")}, {passes("fixer", "join them", "a.*", "d*/**")}, {works("lead again")}},
		work: map[string][]change{
			"mend it": {{"a.txt", "one"}, {"d", "1"}}, "improve it": {{"a.txt", "two"}, {"d", ""}, {"d/e.txt", "2"}},
			"join them": {{"a.txt", "one and two"}, {"a.call_1_2.txt", ""}},
		},
		files: []string{"a.*", "d", "d/**"},
	}
	res := w.run(t, &engine.RunOptions{})
	require.NoError(t, res.Err())
	want := map[string]string{"a.txt": "one", "a.call_1_2.txt": "two", "d": "1", "d.call_1_2/e.txt": "2"}
	require.Equal(t, want, w.seen["lead"])
	require.Equal(t, map[string]string{"a.txt": "one", "a.call_1_2.txt": "two"}, w.seen["join them"], "within the grant of the edge")
	joined := map[string]string{"a.txt": "one and two", "d": "1", "d.call_1_2/e.txt": "2"}
	require.Equal(t, joined, w.seen["lead again"])
	require.Equal(t, joined, of(t, res, "Lead").OutputFiles)
}

// Files that were returned to an agent stay with it when it transfers its conversation: nothing grants them to the next
// holder, which the journal says.
func TestReturnedFilesAreNotTransferred(t *testing.T) {
	t.Parallel()
	w := &workshop{
		made:      []change{{"a.txt", "a"}},
		lead:      [][]llm.ToolCall{{passes("fixer", "mend it", "**")}, {works("lead")}, {call("transfer_to_other", `{}`)}},
		work:      map[string][]change{"mend it": {{"a.txt", "one"}, {"hidden.txt", "new"}}},
		transfers: true,
	}
	res := w.run(t, &engine.RunOptions{})
	require.NoError(t, res.Err())
	require.Equal(t, map[string]string{"a.txt": "one", "hidden.txt": "new"}, w.seen["lead"])
	require.Equal(t, map[string]string{"a.txt": "a"}, w.seen["holder"])
	require.NotContains(t, strings.Join(w.asked["other"], ""), "hidden.txt")
	var withheld []gate.Decision
	for _, r := range of(t, res, "Lead").Receipts {
		for _, s := range r.Sources {
			if d := s.Decision; d != nil && d.To == "other" && d.Source.Kind == handoff.Transferred && strings.HasSuffix(d.Source.Name, "/files") {
				withheld = append(withheld, *d)
			}
		}
	}
	require.Len(t, withheld, 1)
	require.Equal(t, []any{gate.Withheld, gate.RuleGrant, "fixer"}, []any{withheld[0].Verdict, withheld[0].Rule, withheld[0].From})
}

// A process may die at any time. What a child returned is in the workspace once, and no call that ended is made again.
func TestPassedFilesResumeAfterEveryCommit(t *testing.T) {
	t.Parallel()
	shop := func() *workshop {
		return &workshop{
			made: []change{{"a.txt", "a"}, {"gone.txt", "g"}},
			lead: [][]llm.ToolCall{
				{works("lead 1", change{"own.txt", "1"})},
				{passes("fixer", "mend it", "**"), passes("other", "improve it", "a.txt"), works("lead 2", change{"own.txt", "3"})},
				{passes("fixer", "check it", "**")},
				{works("lead 4")},
			},
			work: map[string][]change{"mend it": {{"a.txt", "one"}, {"own.txt", "2"}, {"gone.txt", ""}}, "improve it": {{"a.txt", "two"}}, "check it": {{"b.txt", "b"}}},
		}
	}
	dir := filepath.Join(t.TempDir(), "w")
	require.NoError(t, os.Mkdir(dir, 0o700))
	j := &folderJournal{memory: &memory{}, dir: dir, copies: []string{}}
	first := shop()
	want := first.run(t, &engine.RunOptions{RunID: "r", Journal: j})
	require.NoError(t, want.Err())
	files := map[string]string{"a.txt": "one", "a.call_2_2.txt": "two", "own.txt": "3", "b.txt": "b"}
	require.Equal(t, files, of(t, want, "Lead").OutputFiles)
	require.Equal(t, map[string]string{"a.txt": "one", "a.call_2_2.txt": "two", "own.txt": "3"}, first.seen["check it"])
	continued := 0
	for n := range j.len() {
		past := j.history(n)
		now := filepath.Join(t.TempDir(), "w")
		require.NoError(t, copyFolder(now, j.copies[n]))
		again := shop()
		res := again.run(t, &engine.RunOptions{RunID: "r", Journal: &folderJournal{memory: after(past), dir: now}})
		require.NoError(t, res.Err(), "after %d commits", n)
		require.Equal(t, answers(want), answers(res))
		require.Equal(t, files, of(t, res, "Lead").OutputFiles, "after %d commits", n)
		requireNoFiles(t, now)
		if began, ended := callsIn(past); again.calls["lead 1"] == 0 && len(ended) > 2 && len(began) >= len(ended) {
			continued++
			if again.seen["check it"] != nil {
				require.Equal(t, first.seen["check it"], again.seen["check it"], "after %d commits", n)
			}
			for _, by := range []string{"mend it", "improve it", "check it"} {
				require.LessOrEqual(t, again.calls[by], 1)
			}
		}
	}
	require.Greater(t, continued, j.len()/4)
	require.True(t, slices.ContainsFunc(j.history(j.len()).Log, isReturned))
}

// fenceWord is the random word of a fence.
var fenceWord = regexp.MustCompile(`[0-9a-f]{32}`)

// isReturned reports whether an entry says what a workspace is like with the files that a call returned.
func isReturned(e record.Entry) bool {
	return e.Files != nil && e.Files.Folder != "" && e.Files.Keys.Files != record.Key{}
}

// A rule about a file holds for it also when the run has put it beside another one, where no rule can name it.
//
// Requirement: G67.
func TestRulesHoldForFilesBesideOthers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rules []handoff.PairRule
		want  map[string]string
	}{
		{nil, map[string]string{"a.txt": "one", "a.call_1_2.txt": "two"}},
		{[]handoff.PairRule{{From: "other", To: "fixer", Block: []task.Path{"/a.txt"}}}, map[string]string{"a.txt": "one"}},
	} {
		w := &workshop{
			made:  []change{{"a.txt", "a"}},
			lead:  [][]llm.ToolCall{{passes("fixer", "mend it", "**"), passes("other", "improve it", "a.txt")}, {passes("fixer", "check it", "**")}},
			work:  map[string][]change{"mend it": {{"a.txt", "one"}}, "improve it": {{"a.txt", "two"}}, "check it": {}},
			rules: tt.rules,
		}
		require.NoError(t, w.run(t, nil).Err())
		require.Equal(t, tt.want, w.seen["check it"], "%v", tt.rules)
	}
}
