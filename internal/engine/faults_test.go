package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// Whatever is wrong with a value, no more of it flows than of a sound one, and the
// result names the task and the reason.
//
// A detector cannot be broken from outside: own patterns are of RE2, which does
// not panic, they end with the context of the attempt, and what is above the
// bound on checked values is withheld before any detector sees it.
//
// Requirement: G2.
func TestInvalidValuesAreWithheld(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, 10_000) + `"` + canary + `"` + strings.Repeat("}", 10_000)
	tests := []struct {
		name   string
		reply  string
		schema bool
		allow  []task.Path
		fails  string // the title of the task that fails
		code   string
		why    string
	}{
		{"sound", `{"score":7,"story":"` + canary + `"}`, true, []task.Path{"/score"}, "", "", ""},
		{"5 MiB of text", strings.Repeat("x", 5<<20) + canary, false, []task.Path{task.Whole}, "maker", codes.Reply, "larger than 4 MiB"},
		{"5 MiB of JSON", `{"score":"` + strings.Repeat("x", 5<<20) + `","story":"` + canary + `"}`, true, []task.Path{"/score"}, "maker", codes.Reply, "larger than 4 MiB"},
		{"depth 10,000", deep, true, []task.Path{"/score"}, "maker", codes.Schema, "deep"},
		{"depth 10,000, text", deep, false, []task.Path{"/score"}, "reader", gate.CodeWithheld, "a text is delivered whole or not at all"},
		{"duplicate keys", `{"score":7,"score":"` + canary + `"}`, true, []task.Path{"/score"}, "maker", codes.Schema, "duplicate key"},
		{"duplicate keys, text", `{"score":7,"score":"` + canary + `"}`, false, []task.Path{"/score"}, "reader", gate.CodeWithheld, "a text is delivered whole or not at all"},
		{"invalid UTF-8", "\xff" + canary, false, []task.Path{task.Whole}, "maker", "", "UTF-8"},
		{"two values", `{"score":7}{"story":"` + canary + `"}`, false, []task.Path{"/score"}, "reader", gate.CodeWithheld, "a text is delivered whole or not at all"},
		{"a number beyond all", `{"score":1e999999,"story":"` + canary + `"}`, false, []task.Path{"/story2"}, "reader", gate.CodeWithheld, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if len(tt.reply) > 1<<20 {
				slowtest.NotUnderRace(t)
			}
			d := newDesk()
			policy := &handoff.Policy{Rules: []handoff.PairRule{{From: "maker", To: "reader", Allow: tt.allow}}}
			tm := governed(t, policy, member("maker", says(tt.reply)), member("reader", d.keeps(says("r"))))
			maker := spec("maker")
			if tt.schema {
				maker = shaped(maker)
			}
			var a audience
			res := run(t, tm, a.options(), maker, spec("reader", "maker"))
			require.NotContains(t, d.of("reader"), canary)
			if tt.fails == "" {
				require.NoError(t, res.Err())
				require.Contains(t, d.of("reader"), `{"score":7}`)
				return
			}
			require.Empty(t, d.prompts)
			failed := of(t, res, tt.fails)
			require.NotNil(t, failed.Error)
			require.Contains(t, failed.Error.Message, tt.why)
			if tt.code != "" {
				require.Equal(t, tt.code, failed.Error.Code)
			}
			if tt.fails == "reader" {
				require.Equal(t, gate.Withheld, a.handed("reader")[0].Verdict)
				require.Zero(t, a.handed("reader")[0].After.Bytes)
				require.Contains(t, failed.Error.Message, "maker", "whose context it was")
			}
		})
	}
}

// A withheld optional value leaves one line in the prompt.
//
// Requirement: G2.
func TestInvalidOptionalValuesAreOneLine(t *testing.T) {
	t.Parallel()
	d := newDesk()
	reader := spec("reader")
	reader.DependsOn = []task.Ref{{Task: "maker", Optional: true}}
	policy := &handoff.Policy{Rules: []handoff.PairRule{{From: "maker", To: "reader", Allow: []task.Path{"/score"}}}}
	res := run(t, governed(t, policy, member("maker", says(`{"score":7}{"story":"`+canary+`"}`)), member("reader", d.keeps(says("r")))), nil, spec("maker"), reader)
	require.NoError(t, res.Err())
	require.Contains(t, d.of("reader"), "[withheld: rule; status completed]")
	require.NotContains(t, d.of("reader"), canary)
	require.NotContains(t, d.of("reader"), "score")
}

// Context from the future is withheld, as after a clock was set back.
//
// Requirement: G16.
func TestClockSetBack(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk()
			store := teammemory.NewMapStore()
			e, err := envelope.New(envelope.Header{ID: "note", Producer: "maker", Run: "earlier", CreatedAt: time.Now().Add(ahead)}, envelope.Text(canary))
			require.NoError(t, err)
			require.NoError(t, store.Put(t.Context(), teammemory.Entry{Agent: "maker", Key: "note", Envelope: e}))
			reader := spec("reader")
			reader.MemoryScope = task.ScopeAll
			var a audience
			res := run(t, newTeam(t, member("maker", says("x")), member("reader", d.keeps(says("r")))), a.with(engine.RunOptions{Memory: store}), reader)
			require.NoError(t, res.Err())
			require.Equal(t, ahead == 0, strings.Contains(d.of("reader"), canary))
			h := a.handed("reader")[0]
			require.Equal(t, ahead == 0, h.Verdict == gate.Passed)
			if ahead > 0 {
				require.Equal(t, gate.ReasonExpired, h.Reason)
			}
		})
	}
}

// A subscriber that panics or never returns changes nothing of what flows.
//
// Requirement: G2.
func TestSubscribersChangeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		stuck := make(chan struct{})
		o := &engine.RunOptions{Subscribers: []func(event.Event){func(event.Event) { panic("x") }, func(event.Event) { <-stuck }}}
		policy := &handoff.Policy{Rules: []handoff.PairRule{{From: "maker", To: "reader", Allow: []task.Path{"/score"}}}}
		res := run(t, governed(t, policy, member("maker", says(facts)), member("reader", d.keeps(says("r")))), o, shaped(spec("maker")), spec("reader", "maker"))
		close(stuck)
		require.NoError(t, res.Err())
		require.Contains(t, d.of("reader"), `{"score":7}`)
		require.NotContains(t, d.of("reader"), "Ada")
	})
}

// errQuoting is an error whose own methods panic.
type errQuoting struct{}

func (errQuoting) Error() string { panic("no words") }

// An error whose Error method panics fails its task.
//
// Requirement: G2.
func TestPanicInErrorTextFailsTheTask(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"itself": errQuoting{}, "wrapped": fmt.Errorf("%w", errors.Join(errBroken, errBroken))} {
		d := newDesk()
		res := run(t, governed(t, summarizing(9), member("maker", says(canary)), member("reader", d.keeps(retells(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, err }, says("r"))))), nil, spec("maker"), spec("reader", "maker"))
		require.NotNil(t, of(t, res, "reader").Error, name)
		require.Len(t, d.prompts["reader"], 1, "the task itself is not asked for")
	}
}

// A pattern of the policy that is slow on a large value ends with the time limit
// of the attempt. The value is withheld, and the agent is not called.
//
// Requirement: G29.
func TestSlowPatternEndsWithTheAttempt(t *testing.T) {
	t.Parallel()
	slow := handoff.Redaction{Patterns: []redact.Pattern{{Name: "slow", Regexp: `(?:[a-z0-9]{1,10}x){1,40}9z`}}}
	maker := member("maker", says(strings.Repeat("0x1x2x", 1<<20/6)))
	reader := spec("reader", "maker")
	reader.Timeout = 10 * time.Millisecond
	var a audience
	res := run(t, governed(t, &handoff.Policy{Redact: slow}, maker, member("reader", never(t))), a.options(), spec("maker"), reader)
	failed := of(t, res, "reader")
	require.NotNil(t, failed.Error)
	require.Equal(t, codes.Timeout, failed.Error.Code)
	require.ErrorIs(t, failed.Error, engine.ErrAttemptTimeout)
	require.Equal(t, gate.Withheld, a.handed("reader")[0].Verdict)
	require.Equal(t, gate.RuleRedact, a.handed("reader")[0].Rule)
}

// A run that is canceled while a pattern works on a value withholds it, and ends.
//
// Requirement: G29.
func TestSlowPatternEndsWithTheRun(t *testing.T) {
	t.Parallel()
	slow := handoff.Redaction{Patterns: []redact.Pattern{{Name: "slow", Regexp: `(?:[a-z0-9]{1,10}x){1,40}9z`}}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var a audience
	o := a.with(engine.RunOptions{Subscribers: []func(event.Event){func(e event.Event) {
		if e.Type == event.TaskStart && e.Title == "reader" {
			cancel()
		}
	}}})
	maker := member("maker", says(strings.Repeat("0x1x2x", 1<<20/6)))
	res, err := governed(t, &handoff.Policy{Redact: slow}, maker, member("reader", never(t))).RunTasks(ctx, []task.Spec{spec("maker"), spec("reader", "maker")}, o)
	require.NoError(t, err)
	require.Equal(t, engine.StatusCanceled, res.Status)
	require.Equal(t, gate.Withheld, a.handed("reader")[0].Verdict)
	require.Equal(t, gate.RuleRedact, a.handed("reader")[0].Rule)
}

// A pattern of the policy that is slow on a large goal ends with the caller's
// context, also while the goal is checked before the run. By themselves these
// patterns take much longer than the test allows.
//
// Requirement: G29.
func TestSlowPatternEndsWithTheCaller(t *testing.T) {
	t.Parallel()
	slow := handoff.Redaction{}
	for i := range 4 {
		slow.Patterns = append(slow.Patterns, redact.Pattern{Name: fmt.Sprint("slow", i), Regexp: `(?:[a-z0-9]{1,10}x){1,40}9z`})
	}
	tm, err := engine.New(engine.Config{
		Agents:      []engine.Member{member("a", never(t))},
		Coordinator: &engine.Coordinator{Agent: engine.AgentFunc(never(t))},
		Policy:      &handoff.Policy{Redact: slow},
	})
	require.NoError(t, err)
	goal := engine.Goal{Text: strings.Repeat("0x1x2x", gate.DefaultContextBytes/6)}
	canceled := func(t *testing.T) context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		start := time.Now()
		t.Cleanup(func() { require.Less(t, time.Since(start), 8*time.Second, "the check alone takes longer") })
		return ctx
	}
	t.Run("a goal", func(t *testing.T) {
		t.Parallel()
		res, err := tm.RunTeam(canceled(t), goal, nil)
		require.NoError(t, err)
		require.Equal(t, engine.StatusCanceled, res.Status)
	})
	t.Run("a plan of a goal", func(t *testing.T) {
		t.Parallel()
		_, err := tm.PlanTeam(canceled(t), goal, nil)
		require.ErrorIs(t, err, engine.ErrCanceled)
	})
	t.Run("a goal beside tasks", func(t *testing.T) {
		t.Parallel()
		res, err := tm.RunTasks(canceled(t), []task.Spec{spec("a")}, &engine.RunOptions{Answer: &goal})
		require.NoError(t, err)
		require.Equal(t, engine.StatusCanceled, res.Status)
	})
}
