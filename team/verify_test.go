package team_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
	"github.com/runteam/runteam/tool/builtin"
)

// A court is a writer, who writes draft 1, draft 2 and so on, a reader, and judges.
type court struct {
	accepts map[string]int // from which draft on a judge accepts; nonsense and broken are no drafts
	hears   func(n int)    // called when the nth prompt is sent, if it is set
	mu      sync.Mutex     // guards asked
	asked   []string       // who was asked, and the prompt
}

// What judges do who give no verdict.
const (
	nonsense = 100 + iota
	broken
)

// draftIn returns the number of the last draft that a prompt has.
func draftIn(text string) (n int) {
	_, rest, _ := strings.Cut(text, "\ndraft ")
	n, _ = strconv.Atoi(strings.Split(rest, "\n")[0])
	return n
}

func (c *court) note(who string, p prompt.Prompt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, who+": "+fenceID.ReplaceAllString(p.Text(), "envelope"))
	if c.hears != nil {
		c.hears(len(c.asked))
	}
}

// prompts returns the prompts of an agent.
func (c *court) prompts(who string) (all []string) {
	for _, one := range c.asked {
		if text, ok := strings.CutPrefix(one, who+": "); ok {
			all = append(all, text)
		}
	}
	return all
}

func (c *court) says(who string, does func(text string) (string, error)) team.Member {
	return team.Member{Name: who, Agent: versionedAgent{agent.Func(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		c.note(who, p)
		text, err := does(p.Text())
		return agent.Reply{Text: text}, errors.Join(err, ctx.Err())
	})}}
}

func (c *court) members() []team.Member {
	members := []team.Member{
		c.says("writer", func(text string) (string, error) { return fmt.Sprint("draft ", draftIn(text)+1), nil }),
		c.says("reader", func(text string) (string, error) { return fmt.Sprint("read draft ", draftIn(text)), nil }),
	}
	for who, from := range c.accepts {
		members = append(members, c.says(who, func(text string) (string, error) {
			switch from {
			case nonsense:
				return "I like it.", nil
			case broken:
				return "", errors.New("out of order")
			}
			n := draftIn(text)
			return fmt.Sprintf(`{"accept":%t,"critique":"%s objects to %d"}`, n >= from, who, n), nil
		}))
	}
	return members
}

func (c *court) team(t testing.TB) *team.Team {
	t.Helper()
	tm, err := team.New(team.Config{Agents: c.members()})
	require.NoError(t, err)
	return tm
}

// judged is a task with judges, and one that reads its result.
func judged(v task.Verify) []task.Spec {
	return []task.Spec{
		{Title: "Write", Description: "Write it well.", Assignee: "writer", Verify: &v},
		{Title: "Read", Description: "Read it.", Assignee: "reader", DependsOn: task.On("Write")},
	}
}

func judges(names ...string) (all []task.Judge) {
	for _, name := range names {
		all = append(all, task.Judge{Agent: name})
	}
	return all
}

func TestVerify(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		accepts map[string]int
		verify  task.Verify
		want    string // the output, or the error of Write
		rounds  int
		verdict string // the last one
		status  team.Status
	}{
		{"accepted at once", map[string]int{"a": 1}, task.Verify{}, "read draft 1", 1, `{"accepted":true,"accepts":1,"dissent":[]}`, team.StatusOK},
		{"revised", map[string]int{"a": 2}, task.Verify{}, "read draft 2", 2, `{"accepted":true,"accepts":1,"dissent":[]}`, team.StatusOK},
		{"revised more than once", map[string]int{"a": 4}, task.Verify{MaxRounds: 9}, "read draft 4", 4, `{"accepted":true,"accepts":1,"dissent":[]}`, team.StatusOK},
		{"never accepted", map[string]int{"a": 9}, task.Verify{OnDissent: "revise"}, "ANSWER_REJECTED the judges reject the answer: fewer than 1 accept it after 2 rounds", 2, `{"accepted":false,"accepts":0,"dissent":[{"critique":"a objects to 2","judge":"a"}]}`, team.StatusError},
		{"two of three by default", map[string]int{"a": 1, "b": 1, "c": 9}, task.Verify{}, "read draft 1", 1, `{"accepted":true,"accepts":2,"dissent":[{"critique":"c objects to 1","judge":"c"}]}`, team.StatusOK},
		{"one of three is too few", map[string]int{"a": 1, "b": 2, "c": 9}, task.Verify{}, "read draft 2", 2, `{"accepted":true,"accepts":2,"dissent":[{"critique":"c objects to 2","judge":"c"}]}`, team.StatusOK},
		{"one of two by default", map[string]int{"a": 1, "b": 9}, task.Verify{}, "read draft 1", 1, `{"accepted":true,"accepts":1,"dissent":[{"critique":"b objects to 1","judge":"b"}]}`, team.StatusOK},
		{"all of two", map[string]int{"a": 1, "b": 2}, task.Verify{Quorum: 2}, "read draft 2", 2, `{"accepted":true,"accepts":2,"dissent":[]}`, team.StatusOK},
		{"rejected at once", map[string]int{"a": 2}, task.Verify{OnDissent: "reject"}, "ANSWER_REJECTED the judges reject the answer: fewer than 1 accept it", 1, `{"accepted":false,"accepts":0,"dissent":[{"critique":"a objects to 1","judge":"a"}]}`, team.StatusError},
		{"accepted instead", map[string]int{"a": 1}, task.Verify{OnDissent: "reject"}, "read draft 1", 1, `{"accepted":true,"accepts":1,"dissent":[]}`, team.StatusOK},
		{"kept", map[string]int{"a": 2}, task.Verify{OnDissent: "keep"}, "read draft 1", 1, `{"accepted":false,"accepts":0,"dissent":[{"critique":"a objects to 1","judge":"a"}]}`, team.StatusOK},
		{"nonsense does not accept", map[string]int{"a": 1, "b": nonsense}, task.Verify{Quorum: 2}, "ANSWER_REJECTED the judges reject the answer: fewer than 2 accept it after 2 rounds", 2, `{"accepted":false,"accepts":1,"dissent":[{"critique":"(no verdict)","judge":"b"}]}`, team.StatusError},
		{"others accept", map[string]int{"a": 1, "b": broken}, task.Verify{}, "read draft 1", 1, `{"accepted":true,"accepts":1,"dissent":[{"critique":"(no verdict)","judge":"b"}]}`, team.StatusError},
		{"no judge is left", map[string]int{"a": broken, "b": nonsense}, task.Verify{}, "DEPENDENCY_FAILED", 1, "", team.StatusError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := &court{accepts: tt.accepts}
			for _, who := range []string{"a", "b", "c"}[:len(tt.accepts)] {
				tt.verify.Judges = append(tt.verify.Judges, task.Judge{Agent: who})
			}
			res, _ := c.team(t).RunTasks(t.Context(), judged(tt.verify), nil)
			require.Equal(t, tt.status, res.Status, res.Errors)
			require.Len(t, c.prompts("writer"), tt.rounds)
			write, _ := res.Task("Write")
			if write.Status == task.Completed {
				require.Equal(t, tt.want, res.Output)
				require.Equal(t, strings.TrimPrefix(tt.want, "read "), write.Result)
			} else {
				require.Equal(t, tt.want, strings.TrimSpace(write.Error.Code+" "+strings.Repeat(write.Error.Message, min(1, len(tt.want)-len("DEPENDENCY_FAILED")))))
				read, _ := res.Task("Read")
				require.Equal(t, task.Failed, read.Status, "a result that does not count reaches nobody")
			}
			if verdict, ok := res.Task(fmt.Sprint("Write: verdict#", tt.rounds)); tt.verdict != "" {
				require.True(t, ok)
				require.JSONEq(t, tt.verdict, verdict.Structured)
			}
		})
	}
}

// A judge sees the task and the answer, and the writer what the judges object to. No judge sees
// another one.
func TestPromptsOfJudges(t *testing.T) {
	t.Parallel()
	c := &court{accepts: map[string]int{"a": 2, "b": 1}}
	v := task.Verify{Judges: judges("a", "b"), Quorum: 2}
	_, err := c.team(t).RunTasks(t.Context(), judged(v), nil)
	require.NoError(t, err)
	writer, a, b := c.prompts("writer"), c.prompts("a"), c.prompts("b")
	require.Equal(t, "# Task: Write\n\nWrite it well.", strings.TrimSpace(writer[0]), "as without judges")
	require.Contains(t, writer[1], "# Task: Write\n\nWrite it well.\n\nJudges did not accept your previous answer.")
	require.Contains(t, writer[1], "### Previous answer (by writer)\n")
	require.Contains(t, writer[1], "### Objections of the judges (by computed)\n")
	require.Contains(t, writer[1], `"critique":"a objects to 1"`)
	require.NotContains(t, writer[1], "accepts")
	require.Contains(t, a[0], "The task was \"Write\".\n\nWrite it well.\n\n## Context from prerequisite tasks\n\n### Proposed answer (by writer)\n")
	require.Contains(t, a[0], "try to refute it")
	require.Equal(t, strings.ReplaceAll(a[0], "judge a", "judge b"), b[0], "they are asked the same")
	for _, text := range slices.Concat(a, b) {
		require.NotContains(t, text, "objects")
	}

	c = &court{accepts: map[string]int{"a": 1, "b": 1, "c": 1}}
	v = task.Verify{Judges: judges("a", "b", "c", "a"), Mode: "lens"}
	v.Judges[1].Lens = "legal risk"
	_, err = c.team(t).RunTasks(t.Context(), judged(v), nil)
	require.NoError(t, err)
	for who, want := range map[string]string{"a": "only: correctness", "b": "only: legal risk.", "c": "only: completeness"} {
		require.Contains(t, strings.Join(c.prompts(who), ""), want)
	}
	require.Len(t, c.prompts("a"), 2)
	require.Contains(t, strings.Join(c.prompts("a"), ""), "only: edge cases")
}

// Equal judges are asked each, also with the answers of other runs, and a judge is asked again in
// each round.
func TestEqualJudgesAreAskedEach(t *testing.T) {
	t.Parallel()
	j := journal.InMemory()
	defer j.Close()
	c := &court{accepts: map[string]int{"a": 9}}
	tm := c.stubborn(t)
	specs := judged(task.Verify{Judges: judges("a", "a", "a")})
	_, err := tm.RunTasks(t.Context(), specs, &team.RunOptions{Journal: j, RunID: "first"})
	require.Error(t, err)
	require.Len(t, c.prompts("a"), 6)
	_, err = tm.RunTasks(t.Context(), specs, &team.RunOptions{Journal: j, RunID: "second", Reuse: true})
	require.Error(t, err)
	require.Len(t, c.prompts("a"), 6, "each has its own answer")
	more := judged(task.Verify{Judges: judges("a", "a", "a", "a")})
	_, err = tm.RunTasks(t.Context(), more, &team.RunOptions{Journal: j, RunID: "third", Reuse: true})
	require.Error(t, err)
	require.Len(t, c.prompts("a"), 8, "and takes that of no other")
	require.Empty(t, c.prompts("reader"))

	ctx, cancel := context.WithCancel(t.Context())
	c = &court{accepts: map[string]int{"a": 9}, hears: func(n int) {
		if n == 4 {
			cancel()
		}
	}}
	tm, specs = c.stubborn(t), judged(task.Verify{Judges: judges("a")})
	_, err = tm.RunTasks(ctx, specs, &team.RunOptions{Journal: j, RunID: "fourth"})
	require.Error(t, err)
	_, err = tm.Resume(t.Context(), "fourth", &team.RunOptions{Journal: j, Tasks: specs})
	require.ErrorContains(t, err, "the judges reject the answer")
	require.Len(t, c.asked, 5)
	require.Equal(t, c.asked[3], c.asked[4], "the judge of round 2 is asked again")
	require.Equal(t, c.asked[1], c.asked[3], "what the one of round 1 was asked")
}

// stubborn is a court whose writer revises nothing.
func (c *court) stubborn(t testing.TB) *team.Team {
	t.Helper()
	members := c.members()
	members[0] = c.says("writer", func(string) (string, error) { return "draft 1", nil })
	tm, err := team.New(team.Config{Agents: members})
	require.NoError(t, err)
	return tm
}

func TestReplayOfJudges(t *testing.T) {
	t.Parallel()
	j := journal.InMemory()
	defer j.Close()
	c := &court{accepts: map[string]int{"a": 2, "b": 1, "c": 9}}
	specs := judged(task.Verify{Judges: judges("a", "b", "c", "c"), Quorum: 2})
	first, err := c.team(t).RunTasks(t.Context(), specs, &team.RunOptions{Journal: j, RunID: "first"})
	require.NoError(t, err)
	asked := len(c.asked)
	again, err := c.team(t).Replay(t.Context(), "first", &team.RunOptions{Journal: j, Tasks: specs})
	require.NoError(t, err)
	require.Len(t, c.asked, asked)
	require.Equal(t, first.Output, again.Output)
	for i := range first.Tasks {
		require.Equal(t, first.Tasks[i].Result, again.Tasks[i].Result)
	}
	_, err = c.team(t).Replay(t.Context(), "first", &team.RunOptions{Journal: j, Tasks: judged(task.Verify{Judges: judges("a", "b", "c", "c"), Quorum: 3})})
	require.ErrorContains(t, err, "no answer to this prompt", "another quorum is another count")
}

// Judges work for each item of a list, in loops, and behind conditions.
func TestJudgesInLoopsListsAndBranches(t *testing.T) {
	t.Parallel()
	c := &court{accepts: map[string]int{"a": 2, "b": 3}}
	members := append(c.members(), c.says("planner", func(string) (string, error) { return `{"items":["x","y"],"kind":"long"}`, nil }))
	tm, err := team.New(team.Config{Agents: members})
	require.NoError(t, err)
	planned := task.Spec{Title: "Plan", Description: "d", Assignee: "planner", OutputSchema: []byte(`{"type":"object","properties":{"items":{"type":"array","items":{"type":"string"}},"kind":{"enum":["long","short"]}},"required":["items","kind"]}`)}
	list := judged(task.Verify{Judges: judges("a")})
	list[0].ForEach, list[1].DependsOn = &task.ForEach{Task: "Plan", Path: "/items", MaxItems: 3}, []task.Ref{{Each: "Write"}}
	res, err := tm.RunTasks(t.Context(), append(list, planned), nil)
	require.NoError(t, err)
	var titles []string
	for _, one := range res.Tasks {
		titles = append(titles, one.Title)
	}
	require.Equal(t, []string{
		"Write[1]#1", "Write: judge a[1]#1", "Write: verdict[1]#1", "Write[1]#2", "Write: judge a[1]#2", "Write: verdict[1]#2", "Write[1]",
		"Write[2]#1", "Write: judge a[2]#1", "Write: verdict[2]#1", "Write[2]#2", "Write: judge a[2]#2", "Write: verdict[2]#2", "Write[2]", "Read", "Plan",
	}, titles, "of the third item there is nothing")
	require.Contains(t, c.prompts("a")[0], "# Task: Write: judge a\n")
	require.Contains(t, c.prompts("a")[0], `The task was "Write".`)

	// In a loop, a name means what it means where the task is written.
	inner := judged(task.Verify{Judges: judges("a")})[0]
	inner.Key = "w"
	inner.DependsOn = []task.Ref{{Task: "Check", Round: task.Previous, Optional: true}, {Task: "Plan"}}
	inner.Verify.Judges[0].DependsOn = []task.Ref{{Task: "Check", Round: task.Previous, Optional: true}}
	loop := task.Spec{Title: "Loop", Repeat: &task.Repeat{MaxRounds: 2, Until: task.Equals("Check", "/accept", true), Output: "Write", Tasks: []task.Spec{inner,
		{Title: "Note", Template: "{{.results.w}}", DependsOn: task.On("w")},
		{Title: "Check", Description: "d", Assignee: "b", DependsOn: task.On("Write"), OutputSchema: []byte(`{"type":"object","properties":{"accept":{"type":"boolean"},"critique":{"type":"string"}},"required":["accept"]}`)}}}}
	c.asked = nil
	res, err = tm.RunTasks(t.Context(), []task.Spec{planned, loop}, nil)
	require.NoError(t, err)
	last, _ := res.Task("Loop")
	require.Equal(t, "draft 2", last.Result, "the next round of the loop does not see the draft before")
	note, _ := res.Task("Note#2")
	require.Equal(t, "draft 2", note.Result)
	require.NotContains(t, c.prompts("writer")[0], "b objects")
	require.Contains(t, c.prompts("writer")[2], "b objects to 2")
	require.Contains(t, c.prompts("a")[2], "b objects to 2")

	// A task that is not needed has no judges, and cases count.
	long, short := judged(task.Verify{Judges: judges("a")})[0], task.Spec{Title: "Short", Description: "d", Assignee: "reader"}
	long.When, short.When = task.Equals("Plan", "/kind", "long"), task.Equals("Plan", "/kind", "short")
	end := task.Spec{Title: "End", Description: "d", Assignee: "reader", DependsOn: []task.Ref{{OneOf: []string{"Write", "Short"}}}}
	res, err = tm.RunTasks(t.Context(), []task.Spec{planned, long, short, end}, nil)
	require.NoError(t, err)
	require.Equal(t, "read draft 2", res.Output)
	long.When, short.When = task.Equals("Plan", "/kind", "short"), task.Otherwise()
	res, err = tm.RunTasks(t.Context(), []task.Spec{planned, long, short, end}, nil)
	require.NoError(t, err)
	require.Equal(t, "read draft 0", res.Output)
	write, _ := res.Task("Write")
	require.Equal(t, task.NotNeeded, write.Status)
	short.When = task.Equals("Plan", "/kind", "short")
	_, err = tm.Plan([]task.Spec{planned, long, short}, nil)
	require.ErrorContains(t, err, `no task runs if /kind of the result of "Plan" is "long"`)
}

// A text that a template makes can be judged, and not revised.
func TestJudgesOfATemplate(t *testing.T) {
	t.Parallel()
	c := &court{accepts: map[string]int{"a": 2}}
	specs := []task.Spec{{Title: "Letter", Template: "\ndraft 7", Verify: &task.Verify{Judges: judges("a"), OnDissent: "reject"}}}
	res, err := c.team(t).RunTasks(t.Context(), specs, nil)
	require.NoError(t, err)
	require.Equal(t, "\ndraft 7", res.Output)
	specs[0].Verify.OnDissent = ""
	_, err = c.team(t).Plan(specs, nil)
	require.ErrorContains(t, err, "a task without an agent has the same result in each round: write onDissent: reject or keep")
}

// A run that is interrupted while any agent is asked goes on where it was: what was answered is not
// asked again.
func TestInterruptedVerify(t *testing.T) {
	t.Parallel()
	specs := judged(task.Verify{Judges: judges("a", "b", "b"), Quorum: 3})
	for stop := 1; stop <= 9; stop++ {
		j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		c := &court{accepts: map[string]int{"a": 1, "b": 2}, hears: func(n int) {
			if n == stop {
				cancel()
			}
		}}
		tm := c.team(t)
		res, err := tm.RunTasks(ctx, specs, &team.RunOptions{RunID: "r", Journal: j, MaxConcurrency: 1})
		require.Error(t, err)
		require.Equal(t, team.StatusCanceled, res.Status)
		require.Len(t, c.asked, stop)
		res, err = tm.Resume(t.Context(), "r", &team.RunOptions{Journal: j, Tasks: specs})
		require.NoError(t, err)
		require.Equal(t, "read draft 2", res.Output)
		require.Len(t, c.asked, 9+1, "the one that was interrupted is asked again")
		require.NoError(t, j.Close())
	}
}

// What a coordinator wrote about a task is context for its judges, as it is for its agent; and a task
// without an assignee gets one for all rounds.
func TestJudgesOfAPlannedTask(t *testing.T) {
	t.Parallel()
	c := &court{accepts: map[string]int{"a": 2}}
	specs := judged(task.Verify{Judges: judges("a")})
	specs[0].Source.Record = &provenance.Record{From: handoff.Coordinator}
	specs[0].Assignee, specs[0].Requires = "", &task.Requires{Capabilities: []string{"writing"}}
	members := c.members()
	members[0].Capabilities = []string{"writing"}
	tm, err := team.New(team.Config{Agents: members, Coordinator: &team.Coordinator{Agent: members[1].Agent}})
	require.NoError(t, err)
	p, err := tm.Plan(specs, nil)
	require.NoError(t, err)
	require.Equal(t, "writer", p.Specs()[0].Assignee)
	require.NotNil(t, p.Specs()[0].Verify)
	res, err := tm.RunTasks(t.Context(), specs, nil)
	require.NoError(t, err)
	require.Equal(t, "read draft 2", res.Output)
	blocked, err := team.New(team.Config{Agents: members, Coordinator: &team.Coordinator{Agent: members[1].Agent}, Policy: &handoff.Policy{Rules: []handoff.PairRule{
		{From: handoff.Coordinator, To: "a", Ceiling: new(label.Public)},
	}}})
	require.NoError(t, err)
	res, _ = blocked.RunTasks(t.Context(), specs, nil)
	judge, _ := res.Task("Write: judge a#1")
	require.Equal(t, `plan from "coordinator" is withheld by coordinator→a: it is internal, and the rule lets public through at most`, judge.Error.Message)
}

// The files of an answer are judged with it, revised in the next round, and those of the accepted answer
// are the files of the task.
func TestFilesOfAJudgedTask(t *testing.T) {
	t.Parallel()
	files, err := builtin.Files("readwrite", tool.Options{})
	require.NoError(t, err)
	use := func(model llm.Model) agent.Agent { return agent.New(model, agent.Options{}) }
	writer := &chat{replies: []llm.Response{
		calls("file_write", `{"path":"a.txt","content":"one"}`), says("first"),
		calls("file_edit", `{"path":"a.txt","old_string":"one","new_string":"one and two"}`), says("second"),
	}}
	judge := &chat{replies: []llm.Response{
		calls("file_read", `{"path":"a.txt"}`), says(`{"accept":false,"critique":"more"}`), calls("file_read", `{"path":"a.txt"}`), says(`{"accept":true,"critique":""}`),
	}}
	reader := &chat{replies: []llm.Response{calls("file_read", `{"path":"a.txt"}`), says("done")}}
	tm, err := team.New(team.Config{Agents: []team.Member{
		{Name: "writer", Agent: use(writer), Tools: files}, {Name: "judge", Agent: use(judge), Tools: files}, {Name: "reader", Agent: use(reader), Tools: files},
	}})
	require.NoError(t, err)
	specs := []task.Spec{
		{Title: "Write", Description: "d", Assignee: "writer", OutputFiles: []string{"*.txt"}, Verify: &task.Verify{Judges: judges("judge")}},
		{Title: "Read", Description: "d", Assignee: "reader", DependsOn: []task.Ref{{Task: "Write", Files: []task.Path{"/**"}}}},
	}
	res, err := tm.RunTasks(t.Context(), specs, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a.txt": "one and two"}, res.OutputFiles("Write"))
	for at, want := range map[*chat][]string{judge: {"one", "one and two"}, reader: {"one and two"}} {
		for k, text := range want {
			last := at.requests[2*k+1].Messages
			require.Contains(t, last[len(last)-1].Text, text)
		}
	}
}
