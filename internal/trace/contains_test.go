package trace_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/promptview"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// places tells occurrences in short.
func places(s trace.Search) (out []string) {
	for _, o := range s.Occurrences {
		text := fmt.Sprintf("%s of %s", o.Where, o.Title)
		if o.Loose {
			text += ", loosely"
		}
		out = append(out, text)
	}
	return out
}

func TestContainsFollowsATextBack(t *testing.T) {
	t.Parallel()
	file, _ := tell(t)
	tr := read(t, file)
	tests := []struct {
		name, give string
		where      []string
		from       []trace.Origin
	}{
		{
			"of an input", "4417",
			[]string{"prompt of Extract facts", "result of Extract facts", "prompt of Check the blacklist", "prompt of Score fraud"},
			[]trace.Origin{{By: "user", Kind: trace.FromInput, Name: "claim"}},
		},
		{
			"of a task, which nobody told it", "Nobody was at home",
			[]string{"result of Extract facts", "prompt of Score fraud", "result of Score fraud"},
			[]trace.Origin{{By: "intake", Kind: trace.FromTask, Name: "Extract facts", Task: facts.ID}},
		},
		{
			"of a task that had a withheld piece", "The risk is 0.2",
			[]string{"result of Score fraud"},
			[]trace.Origin{{By: "fraud", Kind: trace.FromTask, Name: "Score fraud", Task: score.ID, Unseen: 1}},
		},
		{
			"of a description, across a parameter", "facts of 2026.",
			[]string{"prompt of Extract facts"},
			[]trace.Origin{{By: "user", Kind: trace.FromSpec, Name: "team.yaml:14"}},
		},
		{
			"of a system prompt", "look for fraud",
			[]string{"system of Score fraud"},
			[]trace.Origin{{By: "user", Kind: trace.FromSpec, Name: "team.yaml:9"}},
		},
		{
			"a title, which is also a heading", "Extract facts",
			[]string{"prompt of Extract facts", "prompt of Score fraud"},
			[]trace.Origin{{By: "user", Kind: trace.FromSpec, Name: "team.yaml:14"}},
		},
		{"the builder's own words", "data, not instructions", []string{"prompt of Extract facts", "prompt of Check the blacklist", "prompt of Score fraud", "prompt of Score fraud"}, nil},
		{
			"with other white space", "policy 4417, burst pipe",
			[]string{"result of Extract facts, loosely", "prompt of Score fraud, loosely"},
			[]trace.Origin{{By: "intake", Kind: trace.FromTask, Name: "Extract facts", Task: facts.ID}},
		},
		{"a name in a heading, which is nobody's words", "intake", []string{"prompt of Score fraud", "prompt of Score fraud"}, nil},
		{"nowhere", "no such words", nil, nil},
		{"nothing", "", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := tr.Contains(tt.give)
			require.Equal(t, tt.where, places(s))
			require.Equal(t, tt.from, s.Origins)
			require.Equal(t, 2, s.Unsearched, "the withheld payload, and the result that it was")
		})
	}
}

func TestOccurrencesAreByteRanges(t *testing.T) {
	t.Parallel()
	file, records := tell(t)
	s := read(t, file).Contains("facts of 2026")
	require.Len(t, s.Occurrences, 1)
	o := s.Occurrences[0]
	var text strings.Builder
	for _, p := range records[0].Prompt.Text {
		text.WriteString(p.Words)
	}
	require.Equal(t, "facts of 2026", text.String()[o.Start:o.End])
	require.Equal(t, []int32{0, 3}, o.Sources, "the description, and the parameter in it")
}

// A run that was cut off has no results: then the prompts that results were
// handed to tell whose they were.
func TestOriginOfARunWithoutAResult(t *testing.T) {
	t.Parallel()
	file, _ := tell(t)
	tr := read(t, file[:bytes.LastIndex(file, []byte(`{"result"`))])
	require.False(t, tr.Ended())
	s := tr.Contains("Nobody was at home")
	require.Equal(t, []string{"prompt of Score fraud"}, places(s))
	require.Equal(t, []trace.Origin{{By: "intake", Kind: trace.FromTask, Name: "Extract facts", Task: facts.ID}}, s.Origins)
}

func TestOriginOfAnAnswer(t *testing.T) {
	t.Parallel()
	give := head + `{"result":{"runId":"r1","output":"All is well.","tasks":[],"coordinator":[{"step":"synthesis"}]}}` + "\n"
	s := read(t, []byte(give)).Contains("is well")
	require.Equal(t, []string{"answer of synthesis"}, places(s))
	require.Equal(t, []trace.Origin{{By: handoff.Coordinator, Kind: trace.FromTask, Name: "synthesis", Task: "coordinator/synthesis"}}, s.Origins)
	hidden := strings.Replace(give, "All is well.", "[withheld: secret]", 1)
	require.Equal(t, 1, read(t, []byte(hidden)).Contains("secret").Unsearched)
}

func TestStructuredResultsAreSearched(t *testing.T) {
	t.Parallel()
	give := head + `{"result":{"runId":"r1","output":"","tasks":[{"id":"t","title":"A task","assignee":"a","status":"completed","structured":{"a":"word"}},{"id":"u","title":"Another","status":"failed","result":"word"}]}}` + "\n"
	require.Equal(t, []string{"structured of A task"}, places(read(t, []byte(give)).Contains("word")))
}

// Whatever a text is and wherever it is cut, it is found where it stands, and
// a piece of the input is the user's.
func TestEveryPartOfAnInputIsFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab é\n\t <")), 1, 40, -1).Draw(rt, "text")
		runes := []rune(text)
		from := rapid.IntRange(0, len(runes)-1).Draw(rt, "from")
		part := string(runes[from:rapid.IntRange(from+1, len(runes)).Draw(rt, "to")])
		var out bytes.Buffer
		w := trace.NewWriter(&out, given)
		r := recordOf(t, &facts, "", input(t, "claim", label.Internal, text, "team.yaml:15"))
		require.NoError(rt, w.Record(t.Context(), r))
		_, err := w.Close(nil, noon)
		require.NoError(rt, err)
		s := read(t, out.Bytes()).Contains(part)
		require.NotEmpty(rt, s.Occurrences)
		require.Contains(rt, s.Origins, trace.Origin{By: "user", Kind: trace.FromInput, Name: "claim"})
	})
}

func TestFind(t *testing.T) {
	t.Parallel()
	file, _ := tell(t)
	tr := read(t, file)
	for _, name := range []string{"Score fraud", " SCORE FRAUD ", "score", string(score.ID)} {
		tk, err := tr.Find(name)
		require.NoError(t, err, name)
		require.Equal(t, trace.Task{ID: score.ID, Key: "score", Title: "Score fraud", Assignee: "fraud", Line: "team.yaml:22", Status: task.Completed}, tk)
	}
	_, err := tr.Find("Score frauds")
	require.ErrorIs(t, err, task.ErrUnknown)
	require.EqualError(t, err, `unknown task "Score frauds"; did you mean "Score fraud"?`)
}

func TestAbsentListsUngrantedContext(t *testing.T) {
	t.Parallel()
	file, _ := tell(t)
	tr := read(t, file)
	names := func(i int) (out []string) {
		results, _, inputs := tr.Absent(&tr.Prompts[i], 0)
		for _, r := range results {
			out = append(out, r.Title)
		}
		for _, in := range inputs {
			out = append(out, in.Name)
		}
		return out
	}
	require.Equal(t, []string{"policy"}, names(0))
	require.Equal(t, []string{"Extract facts", "policy"}, names(1), "what was done by then")
	require.Equal(t, []string{"claim", "policy"}, names(2), "what it depends on is there")
}

func TestWithheldListsDecisionsThatPreventedAPrompt(t *testing.T) {
	t.Parallel()
	file, _ := tell(t)
	tr := read(t, file)
	require.Empty(t, tr.Withheld(score.ID))
	held := tr.Withheld(letter.ID)
	require.Len(t, held, 1)
	require.Equal(t, gate.RuleClearance, held[0].Rule)
}

// told is a prompt of one piece of context, by hand.
func told(of *task.Task, attempt int, kind handoff.SourceKind, name, from, words string) record.Prompt {
	at := prompt.Range{End: int32(len(words)), Part: brief.PartPayload}
	d := &gate.Decision{Verdict: gate.Passed, Rule: "r", Source: gate.Source{Kind: kind, Name: name}, From: from, To: of.Assignee, Task: of.ID}
	return record.Prompt{Prompt: &promptview.Shown{
		Receipt: &prompt.Receipt{Session: fmt.Sprintf("r1/%s/%d", of.ID, attempt), Run: "r1", Task: of.ID, Agent: of.Assignee, Text: []prompt.Range{at}, Sources: []prompt.Source{{Producer: from, Decision: d}}},
		Text:    []promptview.Piece{{Range: at, Words: words}},
	}}
}

func traceOf(t *testing.T, records ...record.Prompt) *trace.Trace {
	var out bytes.Buffer
	w := trace.NewWriter(&out, given)
	for _, r := range records {
		require.NoError(t, w.Record(t.Context(), r))
	}
	_, err := w.Close(nil, noon)
	require.NoError(t, err)
	return read(t, out.Bytes())
}

// Who passes on what a prompt told is not where it comes from.
func TestOriginOfMessages(t *testing.T) {
	t.Parallel()
	memory := "intake/task:" + string(facts.ID) + ":result"
	tests := []struct {
		name    string
		records []record.Prompt
		want    []trace.Origin
	}{
		{"a message of its own words", []record.Prompt{told(&score, 1, handoff.Message, "m1", "intake", "the word")}, []trace.Origin{{By: "intake", Kind: trace.FromMessage, Name: "m1"}}},
		{
			"a message that tells an input",
			[]record.Prompt{told(&facts, 1, handoff.Input, "claim", "user", "the word"), told(&score, 1, handoff.Message, "m1", "intake", "the word")},
			[]trace.Origin{{By: "user", Kind: trace.FromInput, Name: "claim"}},
		},
		{"a result by way of the memory", []record.Prompt{told(&score, 1, handoff.Memory, memory, "intake", "the word")}, []trace.Origin{{By: "intake", Kind: trace.FromTask, Name: "Extract facts", Task: facts.ID}}},
		{"a note", []record.Prompt{told(&score, 1, handoff.Memory, "intake/note", "intake", "the word")}, []trace.Origin{{By: "intake", Kind: trace.FromOther, Name: "intake/note"}}},
		{"a goal", []record.Prompt{told(&score, 1, handoff.Goal, "goal", "user", "the word")}, []trace.Origin{{By: "user", Kind: trace.FromGoal, Name: "goal"}}},
		{"a plan", []record.Prompt{told(&score, 1, handoff.Plan, string(score.ID), handoff.Coordinator, "the word")}, []trace.Origin{{By: handoff.Coordinator, Kind: trace.FromOther, Name: "plan"}}},
		{"an error", []record.Prompt{told(&score, 1, handoff.Fault, string(facts.ID), "intake", "the word")}, []trace.Origin{{By: "intake", Kind: trace.FromOther, Name: "Extract facts"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, traceOf(t, tt.records...).Contains("the word").Origins)
		})
	}
}

// A result that came by way of the memory was sent, and a task's own result is
// none that another attempt of it could have been granted.
func TestAbsentOmitsTheMemoryAndTheTaskItself(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Options{Tasks: given.Tasks})
	for i, of := range []*task.Task{&facts, &score} {
		w.Event(event.Event{Seq: i + 1, Type: event.TaskComplete, Run: "r1", Task: of.ID, Title: of.Title, Status: task.Completed})
	}
	require.NoError(t, w.Record(t.Context(), told(&score, 2, handoff.Memory, "intake/task:"+string(facts.ID)+":result", "intake", "x")))
	require.NoError(t, w.Record(t.Context(), told(&check, 1, handoff.Memory, "intake/note", "intake", "x")))
	w.Event(event.Event{Seq: 3, Type: event.AgentStart, Run: "r1", Task: score.ID, Attempt: 2, Receipt: &prompt.Receipt{Session: "not again"}})
	_, err := w.Close(nil, noon)
	require.NoError(t, err)
	require.NotContains(t, out.String(), "not again", "the receipt stands with the prompt")
	tr := read(t, out.Bytes())
	require.Equal(t, score.ID, tr.Prompts[1].Receipt.Task, "it was sent last")
	results, _, _ := tr.Absent(&tr.Prompts[1], 0)
	require.Empty(t, results)
	results, _, _ = tr.Absent(&tr.Prompts[0], 0)
	require.Equal(t, []task.ID{facts.ID}, []task.ID{results[0].ID})
}

// Events tell of decisions that the chain has too, and of some that it has not.
func TestEachDecisionAppearsOnce(t *testing.T) {
	t.Parallel()
	one := event.Handoff{Session: "r1/" + string(score.ID) + "/1", From: "intake", To: "fraud", Task: score.ID, Time: noon}
	user := event.Handoff{Session: "r1/user", From: "fraud", To: handoff.User, Task: score.ID, Time: noon, Ruling: event.Ruling{Reason: gate.ReasonClearance}}
	var out bytes.Buffer
	w := trace.NewWriter(&out, given)
	w.Event(event.Event{Seq: 1, Type: event.Handed, Run: "r1", Handoff: &one})
	require.NoError(t, w.Record(t.Context(), record.Prompt{Handoffs: []event.Handoff{one}}))
	w.Event(event.Event{Seq: 2, Type: event.Handed, Run: "r1", Handoff: &user})
	_, err := w.Close(nil, noon)
	require.NoError(t, err)
	tr := read(t, out.Bytes())
	require.Equal(t, []event.Handoff{one, user}, tr.Handoffs)
	require.Equal(t, []event.Handoff{one}, tr.Withheld(score.ID), "what is held from the user kept no prompt")
}
