package engine_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// sends is an agent that sends a text to each of these readers, and answers.
func sends(text string, to ...string) agentFunc {
	return func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
		for _, name := range to {
			if err := engine.OutboxFrom(ctx).Send(name, text); err != nil {
				return agent.Reply{}, err
			}
		}
		return agent.Reply{Text: "sent"}, nil
	}
}

// An agent sends in its own name, at the label of its prompt. While a run goes
// on, the bus takes no other agent's name from anyone.
//
// Requirement: G37.
func TestAgentCannotForgeTheSender(t *testing.T) {
	t.Parallel()
	var reader listens
	var bus *mailbox.Bus
	tm := newTeamWith(t, edges("ada>bob", "chief>bob"), cleared("ada", label.Confidential, func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
		_, err := bus.Send(mailbox.Draft{From: "chief", To: "bob", Content: "forged"})
		require.ErrorIs(t, err, mailbox.ErrInvalid)
		_, err = bus.Broadcast(mailbox.Draft{From: "chief", Content: "forged"})
		require.ErrorIs(t, err, mailbox.ErrInvalid)
		_, err = bus.Attach("another", nil)
		require.ErrorIs(t, err, mailbox.ErrBusy)
		return agent.Reply{Text: "x"}, engine.OutboxFrom(ctx).Send("bob", "from me")
	}), engine.Member{Name: "bob", Agent: &reader, Accepts: label.Confidential}, member("chief", never(t)))
	bus = tm.NewBus()
	ada, bob := spec("ada"), spec("bob", "ada")
	ada.Classification = label.Confidential
	run(t, tm, &engine.RunOptions{Bus: bus, RunID: "r1"}, ada, bob)
	require.Len(t, reader.prompts, 1)
	require.Contains(t, reader.prompts[0], "\n- **ada**: from me")
	require.NotContains(t, reader.prompts[0], "forged")
	all, err := bus.All("bob")
	require.NoError(t, err)
	require.Len(t, all, 1)
	h := all[0].Envelope.Header()
	require.Equal(t, "ada", h.Producer)
	require.Equal(t, "r1", h.Run)
	require.Equal(t, label.Confidential, h.Classification)
	require.Equal(t, 1, h.Hops)

	_, err = bus.Send(mailbox.Draft{From: "chief", To: "bob", Content: "the program's word"})
	require.NoError(t, err, "between runs the program speaks for anyone")
}

// An outbox is that of one attempt: what a failed attempt sent is not sent, and
// nothing can be sent after its end, by a translation, or without a bus and edges.
func TestOutboxBelongsToOneAttempt(t *testing.T) {
	t.Parallel()
	var reader listens
	var left *engine.Outbox
	tries := 0
	tm := newTeamWith(t, edges("ada>bob"), member("ada", func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
		o := engine.OutboxFrom(ctx)
		require.NotSame(t, left, o)
		left = o
		tries++
		require.NoError(t, o.Send("bob", fmt.Sprint("try ", tries)))
		switch tries {
		case 1:
			return agent.Reply{}, errBroken
		case 2:
			panic("oh")
		case 3:
			return agent.Reply{Text: strings.Repeat("x", gate.MaxReply)}, nil // the gate refuses it
		}
		return agent.Reply{Text: "x"}, nil
	}), engine.Member{Name: "bob", Agent: &reader})
	s := retrying("ada", 3)
	s.RetryDelay = task.NoDelay
	optional := spec("bob", "ada")
	optional.DependsOn[0].Optional = true
	run(t, tm, &engine.RunOptions{Bus: tm.NewBus()}, s, optional)
	require.Len(t, reader.prompts, 1)
	require.NotContains(t, reader.prompts[0], "try", "a refused reply is final, and sent nothing")
	require.ErrorIs(t, left.Send("bob", "late"), engine.ErrOutbox)

	left, tries = nil, 1 // the second attempt panics, the third is not refused
	tm = newTeamWith(t, edges("ada>bob"), member("ada", func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
		tries++
		require.NoError(t, engine.OutboxFrom(ctx).Send("bob", fmt.Sprint("try ", tries)))
		if tries == 2 {
			return agent.Reply{}, errBroken
		}
		return agent.Reply{Text: "x"}, nil
	}), engine.Member{Name: "bob", Agent: &reader})
	run(t, tm, &engine.RunOptions{Bus: tm.NewBus()}, s, optional)
	require.Contains(t, reader.prompts[1], "try 3")
	require.NotContains(t, reader.prompts[1], "try 2")

	var none *engine.Outbox
	require.ErrorIs(t, none.Send("bob", "x"), engine.ErrOutbox)
	require.ErrorIs(t, none.Broadcast("x"), engine.ErrOutbox)
	require.Nil(t, engine.OutboxFrom(t.Context()))
	run(t, newTeam(t, member("ada", func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
		require.Nil(t, engine.OutboxFrom(ctx), "without a bus and edges")
		return agent.Reply{Text: "x"}, nil
	})), nil, spec("ada"))
}

// A run inside an agent of another run does not send in that agent's name.
func TestNestedRunHasItsOwnOutbox(t *testing.T) {
	t.Parallel()
	inner := newTeam(t, member("in", func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
		require.Nil(t, engine.OutboxFrom(ctx))
		return agent.Reply{Text: "x"}, nil
	}))
	outer := newTeam(t, member("out", func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
		require.NotNil(t, engine.OutboxFrom(ctx))
		_, err := inner.RunTasks(ctx, []task.Spec{spec("in")}, nil)
		return agent.Reply{Text: "x"}, err
	}))
	require.NoError(t, run(t, outer, &engine.RunOptions{Bus: outer.NewBus()}, spec("out")).Err())
}

func TestOutboxRefuses(t *testing.T) {
	t.Parallel()
	most, big := strings.Repeat("x", plan.DefaultMessageBytes), strings.Repeat("x", mailbox.MaxContent)
	for name, tt := range map[string]struct {
		send func(*engine.Outbox) error
		want error
	}{
		"to nobody":      {func(o *engine.Outbox) error { return o.Send("", "x") }, engine.ErrOutbox},
		"to all by name": {func(o *engine.Outbox) error { return o.Send("*", "x") }, engine.ErrOutbox},
		"to a stranger":  {func(o *engine.Outbox) error { return o.Send("eve", "x") }, mailbox.ErrUnknown},
		"to the user":    {func(o *engine.Outbox) error { return o.Send("user", "x") }, mailbox.ErrUnknown},
		"to itself":      {func(o *engine.Outbox) error { return o.Send("ada", "x") }, mailbox.ErrInvalid},
		"nothing":        {func(o *engine.Outbox) error { return o.Broadcast("") }, mailbox.ErrInvalid},
		"no text":        {func(o *engine.Outbox) error { return o.Send("bob", "\xff") }, mailbox.ErrInvalid},
		"a large text": {func(o *engine.Outbox) error {
			require.NoError(t, o.Send("bob", most))
			return o.Send("bob", most+"x")
		}, engine.ErrOutbox},
		"a text too large": {func(o *engine.Outbox) error { return o.Send("bob", big+"x") }, mailbox.ErrInvalid},
		"too much": {func(o *engine.Outbox) error {
			for range gate.MaxReply / len(big) {
				if err := o.Send("bob", big); err != nil {
					return err
				}
			}
			return o.Send("bob", "x")
		}, engine.ErrOutbox},
		"too many": {func(o *engine.Outbox) error {
			for range plan.MaxHandoffs {
				if err := o.Send("bob", "x"); err != nil {
					return err
				}
			}
			return o.Send("bob", "x")
		}, engine.ErrOutbox},
		"without an edge":             {func(o *engine.Outbox) error { return o.Send("carl", "x") }, mailbox.ErrNoEdge},
		"against the direction":       {func(o *engine.Outbox) error { return o.Send("dora", "x") }, mailbox.ErrNoEdge},
		"above the limit of the edge": {func(o *engine.Outbox) error { return o.Send("emil", "x") }, mailbox.ErrNoEdge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := append(edges("ada>bob", "dora>ada"), handoff.Edge{From: "ada", To: "emil", MaxClassification: new(label.Internal)})
			members := []engine.Member{cleared("ada", label.Confidential, func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
				if strings.HasPrefix(p.Text(), "# Task: ada") {
					require.ErrorIs(t, tt.send(engine.OutboxFrom(ctx)), tt.want)
				}
				return agent.Reply{Text: "x"}, nil
			}), cleared("bob", label.Confidential, says("x")), member("carl", says("x")), member("dora", says("x")), member("emil", says("x"))}
			c := engine.Config{Agents: members, Edges: list}
			if name == "too much" {
				c.MaxMessageBytes = mailbox.MaxContent
			}
			tm, err := engine.New(c)
			require.NoError(t, err)
			ada, low := spec("ada"), by("ada", spec("low")) // the edge to emil is of use to the second
			ada.Classification = label.Confidential
			require.NoError(t, run(t, tm, &engine.RunOptions{Bus: tm.NewBus()}, ada, low, spec("bob"), spec("dora"), spec("emil")).Err())
		})
	}
}

// Two agents that answer each other's messages stop after the sixteenth.
//
// Requirement: G17.
func TestMessageChainStopsAfterSixteenHops(t *testing.T) {
	t.Parallel()
	sent := 0
	answers := func(to string) agentFunc {
		return func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			if err := engine.OutboxFrom(ctx).Send(to, "and you"); err != nil {
				held := new(gate.WithheldError)
				require.ErrorAs(t, err, &held)
				require.Equal(t, gate.RuleHops, held.Decision.Rule)
				return agent.Reply{Text: "x"}, nil
			}
			sent++
			return agent.Reply{Text: "x"}, nil
		}
	}
	tm := newTeamWith(t, edges("ada<>bob"), member("ada", answers("bob")), member("bob", answers("ada")))
	var specs []task.Spec
	for i := range 20 {
		s := by([]string{"ada", "bob"}[i%2], spec(fmt.Sprint("t", i)))
		if i > 0 {
			s.DependsOn = []task.Ref{{Task: fmt.Sprint("t", i-1)}}
		}
		specs = append(specs, s)
	}
	require.NoError(t, run(t, tm, &engine.RunOptions{Bus: tm.NewBus()}, specs...).Err())
	require.Equal(t, 16+3, sent, "sixteen, and then three of a new chain")
}

// talk is a team whose agents send messages, and a graph in which each is read.
func talk(t testing.TB, c *counter) (*engine.Team, []task.Spec, *engine.RunOptions) {
	says := func(title string) func(context.Context) error {
		switch title {
		case "plan":
			return func(ctx context.Context) error { return engine.OutboxFrom(ctx).Broadcast("the plan stands") }
		case "ask":
			return func(ctx context.Context) error { return engine.OutboxFrom(ctx).Send("bob", "how far are you") }
		}
		return func(context.Context) error { return nil }
	}
	talker := versioned{engine.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		title, _, _ := strings.Cut(strings.TrimPrefix(p.Text(), "# Task: "), "\n")
		if err := says(title)(ctx); err != nil {
			return agent.Reply{}, err
		}
		return c.Run(ctx, p)
	})}
	tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "ada", Agent: talker}, {Name: "bob", Agent: talker}, {Name: "eve", Agent: talker}}, Edges: edges("ada>bob", "ada>eve")})
	require.NoError(t, err)
	specs := []task.Spec{by("ada", spec("plan")), by("bob", spec("work", "plan")), by("ada", spec("ask", "work")), by("bob", spec("reply", "ask")), by("eve", spec("note", "reply"))}
	return tm, specs, &engine.RunOptions{RunID: "r", Bus: tm.NewBus(), Messages: []engine.Message{{From: "user", To: "bob", Text: "be quick"}}}
}

// wrote is what each prompt of a journal has of messages, by task.
func wrote(entries *record.History) map[string][]string {
	found := map[string][]string{}
	for _, e := range entries.Log {
		if e.Exchange != nil {
			found[e.Exchange.Title] = e.Exchange.Messages
		}
	}
	return found
}

// After every commit a run goes on with exactly the messages that it would have
// had, none lost and none twice; and its replay is the run.
func TestMessagesOfAgentsSurviveAnInterruption(t *testing.T) {
	t.Parallel()
	whole := &memory{}
	tm, specs, o := talk(t, &counter{})
	o.Journal = whole
	want, err := tm.RunTasks(t.Context(), specs, o)
	require.NoError(t, err)
	require.NoError(t, want.Err())
	require.Empty(t, want.Warnings)
	for _, x := range whole.exchanges() {
		require.Equal(t, x.Title != "plan" && x.Title != "ask", x.Reusable, "another run would lack the messages of %s", x.Title)
	}
	told := wrote(whole.history(whole.len()))
	require.Equal(t, map[string][]string{"plan": nil, "work": {"message/1", "message/2"}, "ask": nil, "reply": {"message/3"}, "note": {"message/2"}}, told)
	for n := range whole.len() + 1 {
		for _, withBus := range []bool{true, false} {
			past, c := whole.history(n), &counter{}
			tm, specs, o := talk(t, c)
			if !withBus && slices.ContainsFunc(past.Log, func(e record.Entry) bool { return e.Sent != nil && e.Sent.Given == 0 }) {
				o.Bus = nil // the run has one all the same
			}
			after := &memory{}
			o.Journal = after.after(past)
			res, err := start(t.Context(), tm, specs, o)
			require.NoError(t, err)
			require.NoError(t, res.Err())
			require.Empty(t, res.Warnings)
			require.Equal(t, want.Output, res.Output, "after %d commits", n)
			got := wrote(past)
			maps.Copy(got, wrote(after.history(after.len())))
			require.Equal(t, told, got, "after %d commits", n)
			for title, times := range c.count() {
				require.Equal(t, 1, times, title)
			}
		}
	}
	tm, specs, _ = talk(t, &counter{})
	replayed, err := start(t.Context(), tm, specs, &engine.RunOptions{RunID: "r", Messages: o.Messages, Replay: &engine.Replay{}, Journal: after(whole.history(whole.len()))})
	require.NoError(t, err)
	same(t, document(t, want), document(t, replayed))
}

// A message is durable before, or together with, every prompt that holds it, and
// what an attempt sends becomes durable with its answer.
func TestMessageIsDurableBeforeItsReadersPrompt(t *testing.T) {
	t.Parallel()
	j := &memory{}
	tm, specs, o := talk(t, &counter{})
	o.Journal = j
	_, err := tm.RunTasks(t.Context(), specs, o)
	require.NoError(t, err)
	sent := map[string]bool{}
	answered := map[string]int{}
	for n, batch := range j.batches {
		for _, e := range batch {
			switch {
			case e.Exchange != nil:
				answered[e.Exchange.Session] = n
			case e.Sent != nil:
				sent[e.Sent.ID] = true
				if s := e.Sent.Session; s != "" {
					at, known := answered[s]
					require.True(t, known && at == n, "message %s", e.Sent.ID)
				}
			case e.Asked != nil:
				for _, id := range e.Asked.Messages {
					require.True(t, sent[id], "message %s", id)
				}
			}
		}
	}
	require.Len(t, sent, 3)
}

// What an agent that is asked anew sent before is not delivered beside what it
// sends now, and a message that was altered in the journal is lost with a warning.
func TestMessagesOfADiscardedAnswerAreDropped(t *testing.T) {
	t.Parallel()
	whole := &memory{}
	tm, specs, o := talk(t, &counter{fail: map[string]bool{"work": true}})
	o.Journal = whole
	_, err := tm.RunTasks(t.Context(), specs[:2], o)
	require.NoError(t, err)
	for name, change := range map[string]func(*record.History, *engine.RunOptions){
		"asked anew": func(_ *record.History, o *engine.RunOptions) { o.Fresh = []string{"plan"} },
		"altered": func(h *record.History, _ *engine.RunOptions) {
			for i, e := range h.Log {
				if e.Sent != nil && e.Sent.Session != "" {
					h.Log[i].Sent = &record.SentMessage{ID: e.Sent.ID, From: e.Sent.From, To: e.Sent.To, Session: e.Sent.Session, Message: new(envelope.Record)}
					break
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &counter{}
			tm, specs, o := talk(t, c)
			past := whole.history(whole.len())
			j := after(past)
			o.Journal = j
			change(past, o)
			for i, e := range past.Log { // as if no message had been delivered
				if e.Exchange != nil {
					x := *e.Exchange
					x.Messages = nil
					past.Log[i].Exchange = &x
				} else if e.Asked != nil {
					a := *e.Asked
					a.Messages = nil
					past.Log[i].Asked = &a
				}
			}
			res, err := start(t.Context(), tm, specs[:2], o)
			require.NoError(t, err)
			require.NoError(t, res.Err())
			ids := wrote(j.history(j.len()))["work"]
			if name == "altered" {
				require.Equal(t, []string{"message/1"}, ids)
				require.Contains(t, strings.Join(res.Warnings, "\n"), `a message from "ada" to "*", which was sent before, is lost`)
				return
			}
			require.Len(t, ids, 2)
		})
	}
}

// A task keeps its messages over an interruption, whoever comes first then: one
// that was interrupted has its own again, and one that had ended takes no others.
func TestMessagesStayWithTheirTasks(t *testing.T) {
	t.Parallel()
	hello := []engine.Message{{From: "user", To: "bob", Text: "hello"}}
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		does, ctx := abortedIn("second", new(atomic.Int32))
		j := &memory{}
		first, second := by("bob", spec("first")), by("bob", spec("second"))
		second.Priority = task.High
		tm := newTeam(t, engine.Member{Name: "bob", Agent: does})
		_, err := tm.RunTasks(ctx, []task.Spec{first, second}, &engine.RunOptions{RunID: "r", Journal: j, MaxConcurrency: 1, Messages: hello})
		require.NoError(t, err)
		second.Priority = ""
		var bob listens
		res := run(t, newTeam(t, engine.Member{Name: "bob", Agent: &bob}), &engine.RunOptions{RunID: "r", Journal: (&memory{}).after(j.history(j.len())), MaxConcurrency: 1, Messages: hello}, first, second)
		require.NoError(t, res.Err())
		require.Len(t, bob.prompts, 2)
		require.NotContains(t, bob.prompts[0], "hello")
		require.Contains(t, bob.prompts[1], "hello")
	})
	t.Run("ended", func(t *testing.T) {
		t.Parallel()
		j := &memory{}
		c := &counter{fail: map[string]bool{"second": true}}
		first, second := by("bob", spec("first")), by("bob", spec("second", "first"))
		run(t, newTeam(t, engine.Member{Name: "bob", Agent: c}), &engine.RunOptions{RunID: "r", Journal: j}, first, second)
		var bob listens
		res := run(t, newTeam(t, engine.Member{Name: "bob", Agent: &bob, Backend: plan.Backend{Version: "1"}}), &engine.RunOptions{RunID: "r", Journal: (&memory{}).after(j.history(j.len())), Messages: hello}, first, second)
		require.NoError(t, res.Err())
		require.Len(t, bob.prompts, 1)
		require.Contains(t, bob.prompts[0], "hello", "the first is not asked again, and so is given none")
	})
}

// TestAnAgentSendsInLaterTurns checks that an agent in Go sends in each turn, that each message has the label of the
// conversation up to its turn, and that no process which continues the run gives it a lower one or loses it.
//
// Requirement: G37.
func TestAnAgentSendsInLaterTurns(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		told bool // ada is told something confidential after its first turn
		want []string
	}{
		"all turns": {false, []string{"news 0", "news 1", "news 2"}},
		"told more": {true, []string{"news 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				high, low := label.Confidential, label.Internal
				team := func(read *listens) *engine.Team {
					n := &newsroom{}
					boss := n.member(t, "boss", done)
					if tt.told {
						boss = n.member(t, "boss", step{calls: []llm.ToolCall{sendsTo("ada", "CANARY")}}, done)
					}
					boss.Tools, boss.AllowUntrusted, boss.Accepts = nil, nil, high
					ada := n.member(t, "ada")
					ada.Accepts = high
					ada.Agent = agent.Func(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
						time.Sleep(2 * time.Minute)
						turn := len(p.Messages()) / 2
						err := engine.OutboxFrom(ctx).Send("bob", fmt.Sprintf("news %d", turn))
						require.Equal(t, strings.Contains(conversation(p), "CANARY"), err != nil, "turn %d: %v", turn, err)
						if turn < 2 {
							return agent.Reply{ToolCalls: waits.calls}, nil
						}
						return agent.Reply{Text: "done"}, nil
					})
					tm, err := engine.New(engine.Config{Agents: []engine.Member{boss, ada, {Name: "bob", Agent: read}}, Edges: []handoff.Edge{{From: "boss", To: "ada"}, {From: "ada", To: "bob", MaxClassification: &low}}})
					require.NoError(t, err)
					return tm
				}
				specs := []task.Spec{
					by("boss", task.Spec{Title: "Deal", Description: "x", Uses: []task.Use{{Name: "deal"}}}),
					by("ada", task.Spec{Title: "Work", Description: "x"}),
					by("bob", task.Spec{Title: "Read", Description: "x", DependsOn: []task.Ref{{Task: "Work", Optional: true}}}),
				}
				options := func(j *memory) *engine.RunOptions {
					return &engine.RunOptions{RunID: "r", Journal: j, UserAccepts: &high, Inputs: []engine.Input{{Name: "deal", Text: "x", Classification: high}}}
				}
				journal, read := &memory{}, &listens{}
				require.NoError(t, run(t, team(read), options(journal), specs...).Err())
				require.Equal(t, tt.want, newsIn(read))
				for commits := range journal.len() + 1 {
					again := &listens{}
					require.NoError(t, run(t, team(again), options(after(journal.history(commits))), specs...).Err(), "after %d commits", commits)
					for _, one := range newsIn(again) {
						require.Contains(t, tt.want, one, "after %d commits", commits)
					}
					if len(again.prompts) > 0 && !tt.told { // ada may be told before its first turn, once that is repeated
						require.Equal(t, tt.want, newsIn(again), "after %d commits", commits)
					}
				}
			})
		})
	}
}

// newsIn returns what ada sent to a reader, in the order of its last prompt.
func newsIn(l *listens) []string {
	if len(l.prompts) == 0 {
		return nil
	}
	return regexp.MustCompile(`news \d`).FindAllString(l.prompts[len(l.prompts)-1], -1)
}
