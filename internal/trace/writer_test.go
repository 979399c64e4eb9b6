package trace_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/runteam/runteam/internal/promptview"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
)

func TestTraceIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	file, records := tell(t)
	requireGolden(t, "claims.jsonl", file)
	tr := read(t, file)
	require.Equal(t, "r1", tr.Run)
	require.Equal(t, "claims", tr.Name)
	require.Equal(t, noon, tr.Time)
	require.Equal(t, given.Inputs, tr.Inputs)
	require.False(t, tr.Torn)
	require.Equal(t, "error", tr.State.End.Status)
	require.Len(t, tr.Prompts, len(records))
	var ruled []event.Handoff
	for i, r := range records {
		require.JSONEq(t, form(t, r.Prompt), form(t, tr.Prompts[i].Shown))
		require.Equal(t, []string{"Extract facts", "Check the blacklist", "Score fraud"}[i], tr.Prompts[i].Title)
		require.Equal(t, 1, tr.Prompts[i].Attempt)
		ruled = append(ruled, r.Handoffs...)
	}
	require.Equal(t, ruled, tr.Handoffs[:len(ruled)])
	require.Len(t, tr.Handoffs, len(ruled)+1)
	events := eventsIn(t, file)
	for i, e := range events {
		require.Equal(t, i+1, e.Seq)
	}
	require.Equal(t, event.TaskComplete, events[2].Type)
	require.EqualValues(t, 1500, events[2].Duration.Milliseconds())
}

// eventsIn returns the events of a trace file.
func eventsIn(t *testing.T, file []byte) (list []event.Event) {
	take := func(e *event.Event, _ json.RawMessage) { list = append(list, *e) }
	_, err := trace.ReadWith(bytes.NewReader(file), trace.ReadOptions{Other: other, Event: take})
	require.NoError(t, err)
	return list
}

func form(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

func TestDecisionsAreAChain(t *testing.T) {
	t.Parallel()
	key := []byte("sixteen bytes and more")
	for _, o := range []trace.Options{{Name: "plain"}, {Name: "keyed", Key: key}, {Name: "continued", Previous: audit.Head{Digest: [32]byte{1}, Lines: 4}}} {
		t.Run(o.Name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			w := trace.NewWriter(&out, o)
			r := recordOf(t, &facts, "", input(t, "claim", label.Internal, "x", "team.yaml:1"))
			require.NoError(t, w.Record(t.Context(), r))
			head, err := w.Close(outcome(), noon)
			require.NoError(t, err)
			report, err := audit.Verify(&out, audit.VerifyOptions{Key: o.Key, Head: head})
			require.NoError(t, err)
			require.Equal(t, audit.Verified, report.Status, report.Why)
			require.Equal(t, 1, report.Decisions)
			require.Equal(t, "r1", report.Run)
			require.Equal(t, o.Previous, report.Previous)
			require.Equal(t, o.Key != nil, report.Keyed)
		})
	}
	_, err := trace.NewWriter(&bytes.Buffer{}, trace.Options{Key: []byte("short")}).Close(nil, noon)
	require.ErrorContains(t, err, "use at least 16 bytes")
}

func TestDecisionsPrecedeTheirPrompt(t *testing.T) {
	t.Parallel()
	file, _ := tell(t)
	var kinds []string
	for l := range strings.Lines(string(file)) {
		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(l), &members))
		for _, kind := range []string{"trace", "audit", "event", "prompt", "result"} {
			if members[kind] != nil {
				kinds = append(kinds, kind)
			}
		}
	}
	require.Equal(t, "trace audit event"+" audit prompt event event"+" audit prompt event event"+" audit audit prompt event event"+" event audit event event result audit", strings.Join(kinds, " "))
}

// Requirement: G44.
func TestRecordIsDurableBeforeItReturns(t *testing.T) {
	t.Parallel()
	f := &full{writes: 100}
	w := trace.NewWriter(f, given)
	w.Event(event.Event{Seq: 1, Type: event.RunStart, Run: "r1"})
	require.Zero(t, f.syncs, "an event need not wait for the disk")
	require.NoError(t, w.Record(t.Context(), recordOf(t, &facts, "")))
	require.Equal(t, 1, f.syncs)
	require.Equal(t, 2, f.calls, "what belongs together is one write")
}

// Requirement: G44.
func TestAfterAFailedWriteNothingIsSent(t *testing.T) {
	t.Parallel()
	r := recordOf(t, &facts, "")
	for writes := range 3 {
		f := &full{writes: writes}
		w := trace.NewWriter(f, given)
		var err error
		for range 4 {
			if err = w.Record(t.Context(), r); err != nil {
				break
			}
		}
		require.ErrorIs(t, err, errFull)
		before := f.String()
		f.writes = 1000 // there is room again
		require.ErrorIs(t, w.Record(t.Context(), r), errFull)
		w.Event(event.Event{Seq: 1, Run: "r1"})
		_, err = w.Close(outcome(), noon)
		require.ErrorIs(t, err, errFull)
		require.Equal(t, before, f.String(), "what stands there stays a whole number of lines")
	}
}

// Requirement: G45.
func TestTraceThatWasNotWrittenHasNoHead(t *testing.T) {
	t.Parallel()
	f := &full{writes: 1}
	w := trace.NewWriter(f, given)
	require.NoError(t, w.Record(t.Context(), recordOf(t, &facts, "")))
	head, err := w.Close(outcome(), noon)
	require.ErrorIs(t, err, errFull)
	require.Zero(t, head)
	report, err := audit.Verify(&f.Buffer, audit.VerifyOptions{})
	require.NoError(t, err)
	require.Equal(t, audit.Open, report.Status)
}

func TestFailedEventIsReported(t *testing.T) {
	t.Parallel()
	f := &full{}
	w := trace.NewWriter(f, given)
	w.Event(event.Event{Seq: 1, Run: "r1"})
	require.ErrorIs(t, w.Record(t.Context(), recordOf(t, &facts, "")), errFull)
}

func TestClosedTraceTakesNothing(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := trace.NewWriter(&out, given)
	_, err := w.Close(nil, noon)
	require.NoError(t, err)
	size := out.Len()
	_, err = w.Close(nil, noon)
	require.ErrorIs(t, err, trace.ErrClosed)
	require.ErrorIs(t, w.Record(t.Context(), recordOf(t, &facts, "")), trace.ErrClosed)
	w.Event(event.Event{Seq: 1, Run: "r1"})
	require.Equal(t, size, out.Len())
	tr := read(t, out.Bytes())
	require.False(t, tr.Ended())
	require.Empty(t, tr.Run)
}

func TestUnwritablePromptIsNotSent(t *testing.T) {
	t.Parallel()
	r := recordOf(t, &facts, "")
	r.Prompt.Text = append([]promptview.Piece(nil), r.Prompt.Text...)
	r.Prompt.Text[0].Words = "\xff"
	w := trace.NewWriter(&bytes.Buffer{}, given)
	require.ErrorContains(t, w.Record(t.Context(), r), "UTF-8")
	require.ErrorContains(t, w.Record(t.Context(), recordOf(t, &facts, "")), "UTF-8")
}

func TestLargeResultStaysInLinesThatCanBeVerified(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := trace.NewWriter(&out, given)
	long := strings.Repeat("é\x01\"", 1<<18)
	head, err := w.Close(map[string]any{"runId": "r1", "output": long, "tasks": []any{}, "coordinator": []any{nil}}, noon)
	require.NoError(t, err)
	for l := range strings.Lines(out.String()) {
		require.LessOrEqual(t, len(l), record.MaxLine)
	}
	require.Equal(t, 2, strings.Count(out.String(), `{"part":`), "it is cut")
	require.Equal(t, long, read(t, out.Bytes()).State.End.Answer)
	report, err := audit.Verify(&out, audit.VerifyOptions{Head: head})
	require.NoError(t, err)
	require.Equal(t, audit.Verified, report.Status, report.Why)
}

func TestWriterIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := trace.NewWriter(&out, given)
	r := recordOf(t, &facts, "", input(t, "claim", label.Internal, "x", "team.yaml:1"))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { w.Event(event.Event{Seq: i + 1, Type: event.TaskReady, Run: "r1"}) })
		all.Go(func() { require.NoError(t, w.Record(t.Context(), r)) })
	}
	all.Wait()
	head, err := w.Close(nil, noon)
	require.NoError(t, err)
	tr := read(t, out.Bytes())
	require.Len(t, eventsIn(t, out.Bytes()), 8)
	require.Len(t, tr.Prompts, 8)
	report, err := audit.Verify(&out, audit.VerifyOptions{Head: head})
	require.NoError(t, err)
	require.Equal(t, audit.Verified, report.Status, report.Why)
}

// What a task of the coordinator's plan is called stands in the plan, and the
// coordinator's own steps are named by their events.
func TestTitlesComeFromThePlanAndFromEvents(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := trace.NewWriter(&out, trace.Options{})
	step := facts
	step.ID, step.Title, step.Assignee = "coordinator/plan", "", handoff.Coordinator
	r := recordOf(t, &facts, "")
	r.Prompt.Receipt.Task, r.Prompt.Receipt.Agent, r.Prompt.Receipt.Session = step.ID, handoff.Coordinator, "r1/coordinator/plan/1"
	r.Prompt.Text = nil
	r.Prompt.Receipt.Text = nil
	require.NoError(t, w.Record(t.Context(), r))
	w.Event(event.Event{Seq: 1, Type: event.AgentStart, Run: "r1", Task: step.ID, Title: "plan", Agent: handoff.Coordinator, Attempt: 1})
	w.Event(event.Event{Seq: 2, Type: event.PlanReady, Run: "r1", Plan: []event.Planned{{Task: score.ID, Title: score.Title, Agent: "fraud"}}})
	_, err := w.Close(nil, noon)
	require.NoError(t, err)
	tr := read(t, out.Bytes())
	require.Equal(t, "plan", tr.Prompts[0].Title)
	require.Equal(t, 1, tr.Prompts[0].Attempt)
	tk, err := tr.Find("score fraud")
	require.NoError(t, err)
	require.Equal(t, score.ID, tk.ID)
}

func ExampleWriter() {
	var file bytes.Buffer
	w := trace.NewWriter(&file, trace.Options{Name: "claims", Time: noon})
	w.Event(event.Event{Seq: 1, Type: event.RunStart, Time: noon, Run: "r1"})
	_, err := w.Close(nil, noon)
	fmt.Println(err)
	tr, err := trace.Read(&file)
	fmt.Println(tr.Run, err)
	// Output:
	// <nil>
	// r1 <nil>
}
