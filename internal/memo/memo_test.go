package memo_test

import (
	"testing"
	"time"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(second int) time.Time { return noon.Add(time.Duration(second) * time.Second) }

const resume, replay, ask = memo.Own | memo.Lean, memo.Own | memo.Strict, memo.Flags(0)

// history returns what is recorded of a run of one process.
func history(entries ...record.Entry) *record.History {
	return &record.History{Begins: []record.RunStart{{Run: "r", Time: noon}}, Log: entries}
}

// call returns a call for a task, in a session of its attempt.
func call(id task.ID, attempt, part string, keys record.Keys) *record.AgentCall {
	return &record.AgentCall{CallID: record.CallID{Session: "r/" + string(id) + "/" + attempt + part, Task: id, Title: string(id), Agent: "x", Attempt: int(attempt[0] - '0'), Part: part}, Keys: keys, Start: noon, End: at(1)}
}

func asked(id task.ID, attempt, part string, messages ...string) record.Entry {
	return record.Entry{Asked: &record.CallStart{Session: "r/" + string(id) + "/" + attempt + part, Task: id, Agent: "x", Attempt: int(attempt[0] - '0'), Time: noon, Bytes: 40, Messages: messages}}
}

var (
	key  = record.Keys{Key: record.Key{1}, Core: record.Key{2}}
	lean = record.Keys{Key: record.Key{3}, Core: record.Key{2}} // the same prompt with another message
)

// A resume finds the answer to a prompt also if its messages changed meanwhile, and a replay only to the very prompt.
func TestFindByKey(t *testing.T) {
	t.Parallel()
	answer := call("a", "1", "", key)
	h := history(record.Entry{Exchange: answer})
	for _, tt := range []struct {
		flags memo.Flags
		keys  record.Keys
		found bool
	}{{resume, key, true}, {resume, lean, true}, {replay, key, true}, {replay, lean, false}, {ask, key, true}, {ask, lean, false}} {
		require.Equal(t, tt.found, memo.Of(h, tt.flags).Find(tt.keys, &task.Task{ID: "a"}, false).Answer == answer, "%v %v", tt.flags, tt.keys)
	}
}

// Keys of entries are those that the journal has made of them.
func TestFindByMaskedKey(t *testing.T) {
	t.Parallel()
	mask := func(k record.Key) record.Key { return record.Key{9, k[0]} }
	answer := call("a", "1", "", record.Keys{Key: mask(key.Key), Core: mask(key.Core)})
	h := history(record.Entry{Exchange: answer})
	h.Mask = mask
	require.Same(t, answer, memo.Of(h, resume).Find(key, &task.Task{ID: "a"}, false).Answer)
}

// A task takes its own newest answer, else that of an item that moved, but none of another round of a loop.
func TestFindForTask(t *testing.T) {
	t.Parallel()
	titled := func(id task.ID, attempt, title string) *record.AgentCall {
		x := call(id, attempt, "", key)
		x.Title = title
		return x
	}
	first, again, other := titled("a", "1", "Judge [1]#1"), titled("a", "2", "Judge [1]#1"), titled("b", "1", "Judge [2]#1")
	m := memo.Of(history(record.Entry{Exchange: first}, record.Entry{Exchange: again}, record.Entry{Exchange: other}), resume)
	find := func(id task.ID, title string) *record.AgentCall {
		return m.Find(key, &task.Task{ID: id, Spec: task.Spec{Title: title, Instance: &task.Instance{Round: 1}}}, false).Answer
	}
	require.Same(t, again, find("a", "Judge [1]#1"))
	require.Same(t, other, find("b", "Judge [2]#1"))
	require.Same(t, other, find("c", "Judge [3]#1"), "an item that moved in its list")
	require.Nil(t, find("d", "Judge [1]#2"), "another round asks")
}

// Only a replay repeats a failure.
func TestFindFailure(t *testing.T) {
	t.Parallel()
	failed := call("a", "1", "", key)
	failed.Code = codes.Timeout
	h := history(record.Entry{Exchange: failed})
	require.Same(t, failed, memo.Of(h, replay).Find(key, &task.Task{ID: "a"}, false).Answer)
	for _, flags := range []memo.Flags{resume, ask} {
		require.Nil(t, memo.Of(h, flags).Find(key, &task.Task{ID: "a"}, false).Answer)
	}
}

// A conversation continues from its first turn only in a resume, and from an answer to correct if no answer came of it.
func TestFindWithinAttempt(t *testing.T) {
	t.Parallel()
	turn, rejected, answer := call("a", "1", "", key), call("a", "1", "", key), call("a", "1", "", key)
	open := history(record.Entry{Turn: turn}, record.Entry{Rejected: rejected})
	ended := history(record.Entry{Turn: turn}, record.Entry{Rejected: rejected}, record.Entry{Exchange: answer})
	files := &task.Task{ID: "a", Spec: task.Spec{OutputFiles: []string{"**"}}}
	for name, tt := range map[string]struct {
		h         *record.History
		flags     memo.Flags
		of        *task.Task
		isCommand bool
		turn, rej bool
	}{
		"a resume":                         {open, resume, &task.Task{ID: "a"}, false, true, true},
		"a resume after the answer":        {ended, resume, &task.Task{ID: "a"}, false, true, false},
		"a resume of a command":            {open, resume, &task.Task{ID: "a"}, true, true, false},
		"a replay":                         {ended, replay, &task.Task{ID: "a"}, false, false, true},
		"a replay of a command":            {ended, replay, &task.Task{ID: "a"}, true, false, true},
		"a replay of a task with files":    {ended, replay, files, false, false, false},
		"a replay that may call":           {ended, ask, &task.Task{ID: "a"}, false, false, true},
		"a replay that may call a command": {ended, ask, &task.Task{ID: "a"}, true, false, false},
	} {
		f := memo.Of(tt.h, tt.flags).Find(key, tt.of, tt.isCommand)
		require.Equal(t, tt.turn, f.Turn != nil, name)
		require.Equal(t, tt.rej, f.Rejected != nil, name)
	}
	turn.Sends = true
	require.Nil(t, memo.Of(open, resume).Find(key, &task.Task{ID: "a"}, false).Turn, "its messages are gone")
}

// The first prompt of an attempt ends the turns of the one before; holders keep theirs.
func TestPrompts(t *testing.T) {
	t.Parallel()
	const turn, holder = "/turn/2", "/child/call_1_1"
	m := memo.Of(history(asked("a", "1", "", "m1"), record.Entry{Turn: call("a", "1", "", key)}, asked("a", "1", turn, "m2"), record.Entry{Exchange: call("a", "1", turn, key)}, asked("a", "1", holder, "m3")), resume)
	of := m.Task("a")
	require.True(t, of.Converses)
	require.Equal(t, memo.Prompt{Agent: "x", Messages: []string{"m1"}}, of.Prompt(""))
	require.Equal(t, memo.Prompt{Part: turn, Agent: "x", Messages: []string{"m2"}, Answered: true}, of.Prompt(turn))
	require.Equal(t, memo.Prompt{Part: holder, Agent: "x", Messages: []string{"m3"}}, of.Prompt(holder))

	end := call("a", "2", "", key)
	end.Messages = []string{"m4"}
	m = memo.Of(history(asked("a", "1", "", "m1"), asked("a", "1", turn, "m2"), asked("a", "1", holder, "m3"), asked("a", "2", "", "m1"), record.Entry{Exchange: end}), resume)
	of = m.Task("a")
	require.False(t, of.Converses)
	require.Equal(t, []string{"m4"}, of.Prompt("").Messages)
	require.Empty(t, of.Prompt(turn))
	require.NotEmpty(t, of.Prompt(holder))
}

// A question counts from when it was first asked, its first readable answer counts, and only in the same run.
func TestPeople(t *testing.T) {
	t.Parallel()
	question := func(second int, k byte) record.Entry {
		return record.Entry{Question: &record.Question{Task: "a", Agent: "boss", Attempt: 1, Key: record.Key{k}, Time: at(second), Memory: []task.ID{"b"}}}
	}
	answer := func(text, missing string) record.Entry {
		return record.Entry{Answer: &record.Answer{Task: "a", Key: record.Key{1}, Text: text, Missing: missing}}
	}
	entries := []record.Entry{question(1, 1), question(5, 1), answer("", "encrypted"), answer("yes", ""), answer("no", "")}
	m := memo.Of(history(entries...), resume)
	require.Equal(t, at(1), m.Task("a").Question.Since)
	require.Equal(t, "yes", m.Given(record.Key{1}).Text)
	require.True(t, m.Remembers("a", "b"), "its prompt had the result")
	require.False(t, m.Remembers("a", "c"), "the question would be another one")
	require.Nil(t, memo.Of(history(entries...), ask).Given(record.Key{1}), "people are asked again in another run")

	m = memo.Of(history(append(entries, record.Entry{Exchange: call("a", "1", "", key)}, question(9, 1))...), resume)
	require.Equal(t, at(9), m.Task("a").Question.Since, "the task has ended since")

	tool := &record.Question{Task: "a", Attempt: 1, Call: "r/a/call_1_1"}
	plan := &record.Question{Task: "b", Approval: "plan"}
	m = memo.Of(history(record.Entry{Question: tool}, record.Entry{Question: plan}), resume)
	require.True(t, m.Call("r/a/call_1_1").Asked)
	require.Nil(t, m.Task("a").Question)
	require.Same(t, plan, m.Task("b").Approval)
}

func toolCall(id string, effect tool.Effect) record.Entry {
	return record.Entry{ToolCall: &record.CallStart{Session: "r/a/" + id, Task: "a", Agent: "tool:t", Attempt: 1, Effect: string(effect), ApprovedBy: "boss"}}
}

func toolResult(id string, files byte) record.Entry {
	x := &record.AgentCall{CallID: record.CallID{Session: "r/a/" + id, Task: "a", Agent: "tool:t", Attempt: 1}, Start: at(2), End: at(4)}
	if files > 0 {
		x.Folder, x.Keys.Files = "f", record.Key{files}
	}
	return record.Entry{ToolResult: x}
}

// What calls returned that changed a workspace does not count in the next conversation, which has another one.
func TestWorkspaces(t *testing.T) {
	t.Parallel()
	turn := record.Entry{Turn: call("a", "1", "", key)}
	entries := []record.Entry{turn, toolCall("call_1_1", tool.None), toolResult("call_1_1", 0), toolCall("call_1_2", tool.Workspace), toolResult("call_1_2", 7), toolCall("call_1_3", tool.Workspace)}
	m := memo.Of(history(entries...), resume)
	w := m.Workspace("a", "")
	require.Equal(t, "f", w.Folder)
	require.Equal(t, record.Key{7}, w.Files)
	require.Equal(t, "r/a/call_1_2", w.Last)
	require.True(t, w.IsChanging(), "the last call has no end")
	require.NotNil(t, m.Call(w.Last).Result)

	m = memo.Of(history(append(entries, toolResult("call_1_3", 0), turn)...), resume)
	require.Nil(t, m.Workspace("a", ""))
	require.Nil(t, m.Call("r/a/call_1_2").Result)
	require.True(t, m.Call("r/a/call_1_2").Begun)
	require.NotNil(t, m.Call("r/a/call_1_1").Result, "it changed nothing")
}

// Approvals that a run has spent stay spent when it is resumed.
func TestApprovals(t *testing.T) {
	t.Parallel()
	h := history(toolCall("call_1_1", tool.External))
	of := &record.CallStart{Session: "r/a/call_1_1", Agent: "tool:t", ApprovedBy: "boss"}
	spent := memo.Of(h, resume).Approvals()
	starts, always := spent.Of(of)
	require.Equal(t, 1, starts)
	require.False(t, always)
	again := *of
	again.Always = true
	spent.Spend(&again)
	starts, always = spent.Of(of)
	require.Equal(t, 2, starts)
	require.True(t, always)
	for _, m := range []*memo.Memo{nil, memo.Of(h, ask)} {
		starts, _ = m.Approvals().Of(of)
		require.Zero(t, starts)
	}
}

// What was interrupted counts in a resume, and a replay repeats it as it was. Another run counts nothing.
func TestSpent(t *testing.T) {
	t.Parallel()
	ended := call("a", "1", "", key)
	ended.Input = 5
	command := asked("a", "2", "")
	command.Asked.Effect = string(tool.External)
	h := history(asked("a", "1", ""), record.Entry{Exchange: ended}, command)
	for _, tt := range []struct {
		flags    memo.Flags
		attempts int
		input    int
		acted    bool
	}{{resume, 2, 15, true}, {replay, 1, 5, false}, {ask, 0, 0, false}} {
		m := memo.Of(h, tt.flags)
		u, _ := m.Spent()
		require.Equal(t, tt.attempts, m.Attempts("a").Begun())
		require.Equal(t, llm.Usage{InputTokens: tt.input}, u)
		require.Equal(t, u, m.Usage("a"))
		require.Equal(t, tt.acted, m.MayHaveActed("a"))
	}
	require.Equal(t, 2, memo.Of(h, replay).Resumed().Attempts("a").Begun())
}

// A wait for a reply goes on while processes work and the run is not paused. A pause ends with its process.
func TestWaitedFor(t *testing.T) {
	t.Parallel()
	sent := &record.SentMessage{ID: "m", Call: "r/a/call_1_1", Time: at(10)}
	command := func(kind steer.Kind, second int) record.Entry {
		return record.Entry{Command: &record.Command{Kind: kind, Time: at(second)}}
	}
	works := func(second int) record.Entry {
		return record.Entry{Begun: &record.PrefetchStart{Session: "r/b/1", Time: at(second)}}
	}
	for name, tt := range map[string]struct {
		begins  []int
		entries []record.Entry
		seconds int
	}{
		"one process":                          {[]int{0}, []record.Entry{works(15)}, 5},
		"before it was sent":                   {[]int{0}, []record.Entry{works(8)}, 0},
		"two processes":                        {[]int{0, 100}, []record.Entry{works(15), works(103)}, 8},
		"a pause":                              {[]int{0}, []record.Entry{command(steer.Pause, 12), command(steer.Resume, 14), works(15)}, 3},
		"a pause that began before":            {[]int{0}, []record.Entry{command(steer.Pause, 5), command(steer.Resume, 14), works(15)}, 1},
		"a second pause in one":                {[]int{0}, []record.Entry{command(steer.Pause, 11), command(steer.Pause, 12), command(steer.Resume, 14), works(15)}, 2},
		"a pause without an end":               {[]int{0}, []record.Entry{command(steer.Pause, 12), works(15)}, 2},
		"a pause that the process did not end": {[]int{0, 100}, []record.Entry{command(steer.Pause, 12), works(15), works(103)}, 5},
	} {
		h := &record.History{Log: tt.entries}
		for _, second := range tt.begins {
			h.Begins = append(h.Begins, record.RunStart{Run: "r", Time: at(second)})
		}
		require.Equal(t, time.Duration(tt.seconds)*time.Second, memo.Of(h, resume).WaitedFor(sent), name)
	}
	pending := toolResult("call_1_1", 0)
	pending.ToolResult.Code = codes.ReplyPending
	h := history(pending, works(15))
	h.Alive = at(20)
	require.Equal(t, 18*time.Second, memo.Of(h, resume).WaitedFor(sent), "what an entry counts, and what came after it")
}

// A run without earlier entries has a nil memo.
func TestNil(t *testing.T) {
	t.Parallel()
	var m *memo.Memo
	require.False(t, m.Is(memo.Own))
	require.Empty(t, m.Find(key, &task.Task{ID: "a"}, false))
	require.Empty(t, m.Call("r/a/call_1_1"))
	require.Nil(t, m.Task("a"))
	require.Zero(t, m.Counted("a").LastNumber())
	require.Zero(t, m.Attempts("a"))
	require.True(t, m.Remembers("a", "b"))
	require.Equal(t, key.Key, m.Mask(key.Key))
	require.Equal(t, "now", m.Version("x", "now"))
	require.Equal(t, noon, m.Began(noon))
	require.Equal(t, noon, m.Ended(noon))
	require.Nil(t, m.End())
}

// A replay has the times, the end and the versions of the run that it repeats, and knows which messages were read.
func TestRunOfMemo(t *testing.T) {
	t.Parallel()
	h := history(record.Entry{Sent: &record.SentMessage{ID: "m1", Task: "a"}}, record.Entry{Sent: &record.SentMessage{ID: "m2", Task: "a"}}, asked("a", "1", "", "m1"))
	h.End, h.Versions = &record.RunEnd{Time: at(9)}, map[string]string{"x": "then"}
	m := memo.Of(h, replay)
	require.Equal(t, noon, m.Began(at(100)))
	require.Equal(t, at(9), m.Ended(at(100)))
	require.Equal(t, "then", m.Version("x", "now"))
	require.Equal(t, []string{"m2"}, m.Undelivered("a"))
	require.True(t, m.HadDirected("m1"))
	require.False(t, m.HadDirected("m2"))
	m = memo.Of(h, resume)
	require.Nil(t, m.End())
	require.Equal(t, at(100), m.Ended(at(100)))
	require.Equal(t, "now", m.Version("x", "now"))
}
