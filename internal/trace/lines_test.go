package trace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// of says of which run the given trace is.
func of(run string) trace.Options {
	o := given
	o.Run = run
	return o
}

// A step adds something to lines.
type step func(l *trace.Lines) error

// steps are what a run tells, in order.
func steps(t testing.TB) []step {
	tell := func(seq int, kind event.Type) step {
		return func(l *trace.Lines) error {
			return l.Event(event.Event{Seq: seq, Type: kind, Time: noon, Run: "r1", Task: facts.ID, Title: facts.Title, Agent: facts.Assignee, Attempt: 1})
		}
	}
	r := recordOf(t, &facts, "You list facts.", input(t, "claim", label.Internal, claim, "team.yaml:15"))
	held := record.Prompt{Handoffs: []event.Handoff{{Session: "r1/" + string(letter.ID) + "/1", From: "fraud", To: "letters", Task: letter.ID, Time: noon, Ruling: event.Ruling{Verdict: gate.Withheld, Rule: gate.RuleClearance}}}}
	return []step{
		func(l *trace.Lines) error { return l.Add("begin", map[string]string{"run": "r1"}) },
		tell(1, event.RunStart), tell(2, event.TaskReady),
		func(l *trace.Lines) error { return l.Record(r) },
		func(l *trace.Lines) error { return l.Add("asked", json.RawMessage(`{"session":"<r1>"}`)) },
		tell(3, event.AgentStart),
		func(l *trace.Lines) error { return l.Record(held) },
		tell(4, event.TaskComplete),
		func(l *trace.Lines) error { return l.Add("exchange", "x") },
		tell(5, event.RunComplete),
	}
}

// other takes lines of the kinds that steps has.
func other(l *trace.Line) error {
	if !slices.Contains([]string{"begin", "asked", "exchange"}, l.Kind) {
		return trace.ErrKind
	}
	return nil
}

// follow is the state of lines in another process.
func follow(t require.TestingT, o trace.Options, s audit.State) *trace.Lines {
	form, err := s.MarshalBinary()
	require.NoError(t, err)
	var kept audit.State
	require.NoError(t, kept.UnmarshalBinary(form))
	l, err := trace.ContinueLines(o, kept)
	require.NoError(t, err)
	return l
}

// However the lines of a run are split into what is taken at once, and into
// processes, they are the same.
func TestSplitIntoProcessesWritesEqualLines(t *testing.T) {
	t.Parallel()
	all := steps(t)
	for _, key := range [][]byte{nil, []byte("sixteen bytes and more")} {
		o := of("r1")
		o.Key = key
		whole := trace.NewLines(o)
		for _, s := range all {
			require.NoError(t, s(whole))
		}
		head, err := whole.Close(noon)
		require.NoError(t, err)
		want := string(whole.Take())
		require.Empty(t, whole.Take())
		require.True(t, whole.State().Closed())
		rapid.Check(t, func(t *rapid.T) {
			var out strings.Builder
			l := trace.NewLines(o)
			for _, s := range all {
				require.NoError(t, s(l))
				switch rapid.SampledFrom([]string{"go on", "take", "die"}).Draw(t, "then") {
				case "take":
					out.Write(l.Take())
				case "die":
					out.Write(l.Take())
					l = follow(t, o, l.State())
				}
			}
			last, err := l.Close(noon)
			require.NoError(t, err)
			require.Equal(t, head, last)
			out.Write(l.Take())
			require.Equal(t, want, out.String())
		})
		report, err := audit.Verify(strings.NewReader(want), audit.VerifyOptions{Key: key, Head: head})
		require.NoError(t, err)
		require.Equal(t, audit.Verified, report.Status, report.Why)
		require.Equal(t, []int{2, 1}, []int{report.Decisions, report.Withheld})
		tr, err := trace.ReadWith(strings.NewReader(want), trace.ReadOptions{Other: other})
		require.NoError(t, err)
		require.Len(t, eventsIn(t, []byte(want)), 5)
		require.Len(t, tr.Prompts, 1)
	}
}

// Encoded elsewhere, lines are what they are when they are added at once.
func TestEncodedLinesEqualAddedLines(t *testing.T) {
	t.Parallel()
	events, r, others := aTask(t)
	events = append(events, event.Event{Seq: 6, Type: event.PlanReady, Run: "r1", Plan: []event.Planned{{Task: "new", Title: "A new one"}}, Receipt: r.Prompt.Receipt})
	one, two := trace.NewLines(of("r1")), trace.NewLines(of("r1"))
	e, b := two.Encoder(), new(trace.Batch)
	add := func(err error) {
		require.NoError(t, err)
		require.NoError(t, two.AddBatch(b))
		b.Reset() // its memory is used again
	}
	for _, ev := range events {
		require.NoError(t, one.Event(ev))
		add(e.Event(b, ev, nil))
	}
	planned := *r.Prompt.Receipt
	planned.Task, planned.Session = "new", "r1/new/2"
	r.Prompt.Receipt = &planned
	require.NoError(t, one.Record(r))
	require.NoError(t, e.Record(b, r))
	require.NoError(t, one.Add("asked", others[0]))
	add(e.Line(b, "asked", others[0])) // together with the record
	want := string(one.Take())
	require.Equal(t, want, string(two.Take()))
	require.Contains(t, want, `"agent":"fraud","title":"A new one","attempt":2`, "the plan says what it is called")
	require.NotContains(t, want[:strings.Index(want, `{"audit":{"seq":2`)], "receipt", "it stands with the prompt")
	require.Equal(t, one.State(), two.State())
}

func TestLinesAreOfTheirKind(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	e := trace.NewEncoder(nil)
	line := func(value any) string {
		l := trace.NewLines(of("r1"))
		require.NoError(t, l.Add("info", value))
		_, text, _ := bytes.Cut(l.Take(), []byte(`{"info":`))
		return `{"info":` + string(text)
	}
	require.Equal(t, `{"info":{"a":"<b>"}}`+"\n", line(map[string]any{"a": "<b>"}))
	for _, kind := range []string{"", "trace", "audit", "event", "prompt", "part", "result", "Audit", "a b", "a\"", "é", "a1"} {
		err := e.Line(new(trace.Batch), kind, 1)
		require.ErrorContains(t, err, "a word of small letters, and none of trace, audit, event, prompt, part, result", "%q", kind)
	}
	require.Error(t, e.Line(new(trace.Batch), "info", json.RawMessage("{")))
	require.ErrorContains(t, e.Line(new(trace.Batch), "info", strings.Repeat("x", record.MaxLine)), "longer than 16777216")
	require.Len(t, line(strings.Repeat("x", record.MaxLine-len(`{"info":""}`))), record.MaxLine+1)
}

// After an error nothing can be taken, and there is no state to go on from.
func TestLinesKeepTheirFirstError(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		bad  step
		want string
	}{
		"a kind that a trace has": {func(l *trace.Lines) error { return l.Add("audit", 1) }, "cannot be of the kind"},
		"a value that is no JSON": {func(l *trace.Lines) error { return l.Add("info", func() {}) }, "unsupported type"},
		"a decision without a time": {func(l *trace.Lines) error {
			return l.Record(record.Prompt{Handoffs: []event.Handoff{{Time: noon.AddDate(9999, 0, 0)}}})
		}, "record decisions"},
	} {
		l := trace.NewLines(of("r1"))
		require.NoError(t, l.Add("info", 1), name)
		require.NotEmpty(t, l.Take())
		require.NoError(t, l.Add("info", 2))
		first := tt.bad(l)
		require.ErrorContains(t, first, tt.want, name)
		for _, s := range steps(t) {
			require.Equal(t, first, s(l), name)
		}
		_, err := l.Close(noon)
		require.Equal(t, first, err)
		require.Empty(t, l.Take())
		require.True(t, l.State().IsZero())
	}
	l := trace.NewLines(trace.Options{Key: []byte("short")})
	require.ErrorContains(t, l.Add("info", 1), "use at least 16 bytes")
	require.Empty(t, l.Take())
}

func TestNothingIsAddedToClosedLines(t *testing.T) {
	t.Parallel()
	l := trace.NewLines(of("r1"))
	require.True(t, l.State().IsZero(), "nothing was added")
	require.Empty(t, l.Take())
	_, err := l.Close(noon)
	require.NoError(t, err)
	require.Equal(t, 3, bytes.Count(l.Take(), []byte("\n")), "the head, and both ends of the chain")
	for _, s := range steps(t) {
		require.ErrorIs(t, s(l), trace.ErrClosed)
	}
	_, err = l.Close(noon)
	require.ErrorIs(t, err, trace.ErrClosed)
	require.Empty(t, l.Take())
}

// Taken lines do not change until the next line is added, and nothing that the caller
// appends to them gets into later lines.
func TestTakenLinesStayValidUntilTheNextLine(t *testing.T) {
	t.Parallel()
	l, whole := trace.NewLines(of("r1")), trace.NewLines(of("r1"))
	var copies []byte
	for _, s := range steps(t) {
		require.NoError(t, s(l))
		require.NoError(t, s(whole))
		text := l.Take()
		taken := bytes.Clone(text)
		l.State()
		require.Empty(t, l.Take())
		require.Equal(t, taken, text)
		copies = append(copies, taken...)
		_ = append(text, "and what the caller adds to it"...)
	}
	require.Equal(t, string(whole.Take()), string(copies))
}

// A run that came to its end and is taken up again has a second chain, which
// names the head of the first.
func TestClosedRunContinuesWithANewChain(t *testing.T) {
	t.Parallel()
	key := []byte("sixteen bytes and more")
	o := of("r1")
	o.Key = key
	var out bytes.Buffer
	var head audit.Head
	l := trace.NewLines(o)
	for range 3 {
		for _, s := range steps(t) {
			require.NoError(t, s(l))
		}
		var err error
		head, err = l.Close(noon)
		require.NoError(t, err)
		out.Write(l.Take())
		closed := l.State()
		l = follow(t, o, closed)
		require.Empty(t, l.Take(), "nothing stands there before something is added")
		require.Equal(t, closed, l.State())
	}
	report, err := audit.Verify(bytes.NewReader(out.Bytes()), audit.VerifyOptions{Key: key, Head: head, State: l.State()})
	require.NoError(t, err)
	require.Equal(t, audit.Verified, report.Status, report.Why)
	require.Equal(t, []int{3, 6}, []int{report.Runs, report.Decisions})
	require.Len(t, eventsIn(t, out.Bytes()), 15)
	tr, err := trace.ReadWith(&out, trace.ReadOptions{Other: other})
	require.NoError(t, err)
	require.Len(t, tr.Handoffs, 6)
}

func TestLinesOfAnotherRunAreNotContinued(t *testing.T) {
	t.Parallel()
	l := trace.NewLines(of("r1"))
	require.NoError(t, l.Add("info", 1))
	_, err := trace.ContinueLines(of("r2"), l.State())
	require.ErrorContains(t, err, "trace: the state is not one of this chain")
	_, err = trace.ContinueLines(of("r1"), audit.State{})
	require.ErrorContains(t, err, "give one that a chain returned")
}

// Of a run that is cut off anywhere and continued, every line is covered.
//
// Requirement: G45.
func TestNoLineOfAContinuedTraceCanBeAltered(t *testing.T) {
	t.Parallel()
	all := steps(t)
	for cut := range len(all) + 1 {
		var out bytes.Buffer
		l := trace.NewLines(of("r1"))
		for i, s := range all {
			if i == cut {
				out.Write(l.Take())
				if state := l.State(); !state.IsZero() {
					l = follow(t, of("r1"), state)
				}
			}
			require.NoError(t, s(l))
		}
		head, err := l.Close(noon)
		require.NoError(t, err)
		out.Write(l.Take())
		lines := slices.Collect(strings.Lines(out.String()))
		status := func(altered []string) audit.Status {
			r, err := audit.Verify(strings.NewReader(strings.Join(altered, "")), audit.VerifyOptions{Head: head})
			require.NoError(t, err)
			return r.Status
		}
		require.Equal(t, audit.Verified, status(lines))
		for i, line := range lines {
			edited := slices.Clone(lines)
			edited[i] = edit(line)
			require.Equal(t, audit.Broken, status(edited), "line %d edited", i)
			require.Equal(t, audit.Broken, status(slices.Delete(slices.Clone(lines), i, i+1)), "line %d removed", i)
			require.Equal(t, audit.Broken, status(slices.Insert(slices.Clone(lines), i, line)), "line %d doubled", i)
			if i > 0 {
				edited[i-1], edited[i] = line, lines[i-1]
				require.Equal(t, audit.Broken, status(edited), "line %d moved", i)
			}
		}
	}
}

func TestEncoderIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	e := trace.NewEncoder(given.Tasks)
	_, r, _ := aTask(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			require.NoError(t, e.Event(new(trace.Batch), event.Event{Type: event.PlanReady, Plan: []event.Planned{{Task: score.ID, Title: fmt.Sprint(i)}}}, nil))
		})
		all.Go(func() {
			require.NoError(t, e.Record(new(trace.Batch), r))
		})
	}
	all.Wait()
}

func TestReadWithOtherKinds(t *testing.T) {
	t.Parallel()
	file := head + `{"info":{"a":1}}` + "\n" + `{"event":{"seq":1}}` + "\n" + `{"end":null}` + "\n"
	var got []string
	_, err := trace.ReadWith(strings.NewReader(file), trace.ReadOptions{Other: func(l *trace.Line) error {
		got = append(got, l.Kind+" "+string(l.Value))
		return nil
	}, Event: func(*event.Event, json.RawMessage) { got = append(got, "event") }})
	require.NoError(t, err)
	require.Equal(t, []string{`info {"a":1}`, "event", "end null"}, got)

	_, err = trace.Read(strings.NewReader(file))
	require.ErrorIs(t, err, trace.ErrFormat)
	require.EqualError(t, err, `line 2: its kind "info" is unknown; was it written by a newer runteam?`)
	_, err = trace.ReadWith(strings.NewReader(file), trace.ReadOptions{Other: func(l *trace.Line) error {
		if l.Kind == "info" {
			return nil
		}
		return fmt.Errorf("%w %q", trace.ErrKind, l.Kind)
	}})
	require.ErrorIs(t, err, trace.ErrFormat)
	require.EqualError(t, err, `line 4: its kind "end" is unknown; was it written by a newer runteam?`)

	bad := errors.New("wrong key")
	_, err = trace.ReadWith(strings.NewReader(file), trace.ReadOptions{Other: func(*trace.Line) error { return bad }})
	require.ErrorIs(t, err, bad)
	require.NotErrorIs(t, err, trace.ErrFormat)
	require.EqualError(t, err, "line 2: wrong key")
	_, err = trace.ReadWith(strings.NewReader(head+`{"info":1,"end":2}`+"\n"), trace.ReadOptions{Other: other})
	require.EqualError(t, err, "line 2: it has 2 kinds where one belongs")
}

func ExampleLines() {
	o := trace.Options{Run: "r1", Name: "claims", Time: noon}
	l := trace.NewLines(o)
	_ = l.Add("begin", map[string]string{"host": "one"})
	_ = l.Event(event.Event{Seq: 1, Type: event.RunStart, Time: noon, Run: "r1"})
	kept, state := bytes.Clone(l.Take()), l.State() // in one transaction

	// Another process.
	l, err := trace.ContinueLines(o, state)
	if err != nil {
		panic(err)
	}
	_ = l.Add("begin", map[string]string{"host": "two"})
	head, _ := l.Close(noon.Add(time.Minute))
	kept = append(kept, l.Take()...)

	r, _ := audit.Verify(bytes.NewReader(kept), audit.VerifyOptions{Head: head})
	fmt.Println(r.Status)
	_, err = trace.ReadWith(bytes.NewReader(kept), trace.ReadOptions{Other: func(l *trace.Line) error {
		fmt.Println(l.Kind, string(l.Value))
		return nil
	}})
	fmt.Println(err)
	// Output:
	// verified
	// begin {"host":"one"}
	// begin {"host":"two"}
	// <nil>
}

// A snapshot is the trace of the lines so far, whatever is read afterwards.
func TestSnapshotsAreTracesOfWhatWasRead(t *testing.T) {
	t.Parallel()
	file, _ := tell(t)
	in := trace.NewReader(trace.ReadOptions{})
	var read strings.Builder
	same := func(want, got *trace.Trace) {
		t.Helper()
		got.State = want.State
		require.Equal(t, []any{want.Prompts, want.Handoffs}, []any{got.Prompts, got.Handoffs})
		for i := range want.Prompts {
			a, more, inputs := want.Absent(&want.Prompts[i], 0)
			b, moreNow, inputsNow := got.Absent(&got.Prompts[i], 0)
			require.Equal(t, []any{a, more, inputs}, []any{b, moreNow, inputsNow})
		}
	}
	var earlier []*trace.Trace
	var beginnings []string
	for line := range strings.Lines(string(file)) {
		if strings.HasPrefix(line, `{"result":`) {
			break
		}
		read.WriteString(line)
		require.NoError(t, in.Line([]byte(line)))
		now, err := in.Snapshot()
		require.NoError(t, err)
		earlier, beginnings = append(earlier, now), append(beginnings, read.String())
	}
	require.Greater(t, len(earlier), 10)
	for i, now := range earlier {
		want, err := trace.Read(strings.NewReader(beginnings[i]))
		require.NoError(t, err)
		same(want, now)
	}
}
