package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// Attempts to deliver below a label what no schema bounds, or what another reader
// reads.

// scoreOnly is a schema that bounds every value of a result.
const scoreOnly = `{"type":"object","additionalProperties":false,"required":["score"],"properties":{"score":{"type":"integer"}}}`

// scorer is a task of maker with a confidential result.
func scorer(schema string) task.Spec {
	s := spec("maker")
	s.Classification = label.Confidential
	if schema != "" {
		s.OutputSchema = []byte(schema)
	}
	return s
}

// An error's text has the form of a result and is none: no entry lowers it
// for the caller.
//
// Requirement: G14.
func TestErrorTextsAreNotLoweredForTheCaller(t *testing.T) {
	t.Parallel()
	forged := `{"score":"` + canary + `"}`
	for name, fn := range map[string]agentFunc{"an error": fails(errors.New(forged)), "a reply that the schema refuses": says(forged), "a result": says(`{"score":7}`)} {
		policy := &handoff.Policy{Declassify: []handoff.Declassifier{lowering("maker", handoff.User, label.Internal)}}
		var a audience
		book := &ledger{}
		o := a.with(engine.RunOptions{UserAccepts: new(label.Internal), Recorder: book.Record})
		res := run(t, governed(t, policy, cleared("maker", label.Confidential, fn)), o, scorer(scoreOnly))
		require.NotContains(t, told(t, res, &a)+book.recorded(t), canary, name)
		if name == "a result" {
			require.Equal(t, `{"score":7}`, of(t, res, "maker").Structured)
			continue
		}
		require.Equal(t, "[withheld: rule]", of(t, res, "maker").Error.Message, name)
		require.Len(t, a.only(event.Error), 1)
		require.Empty(t, a.only(event.Lowered), name)
	}
}

// Nor for a coordinator below its label.
//
// Requirement: G14.
func TestErrorTextsAreNotLoweredForTheCoordinator(t *testing.T) {
	t.Parallel()
	for _, fn := range []agentFunc{fails(errors.New(`{"score":"` + canary + `"}`)), says(`{"score":7}`)} {
		c := &planner{plans: []string{twoTasks}}
		tm, err := engine.New(engine.Config{
			Agents:      []engine.Member{cleared("maker", label.Confidential, fn), member("other", says("fine"))},
			Coordinator: &engine.Coordinator{Agent: c, Accepts: new(label.Internal)},
			Policy:      &handoff.Policy{Declassify: []handoff.Declassifier{lowering("maker", handoff.Coordinator, label.Internal)}},
		})
		require.NoError(t, err)
		res := run(t, tm, &engine.RunOptions{Answer: &engine.Goal{Text: "Do it."}}, scorer(scoreOnly), spec("other"))
		asked := strings.Join(c.prompts, "\n")
		require.NotContains(t, asked, canary)
		if res.Err() == nil {
			require.Contains(t, asked, `{"score":7}`)
		} else {
			require.Contains(t, asked, "[withheld: rule; status failed]")
		}
	}
}

// Entries of the memory and messages were not checked against a schema.
//
// Requirement: G14.
func TestMemoryAndMessagesAreNotLowered(t *testing.T) {
	t.Parallel()
	free := `{"score":"` + canary + `"}`
	for _, schema := range []string{"", `{"type":"object"}`, `{"type":"object","properties":{"score":{"type":"string"}}}`} {
		for _, reads := range []label.Classification{label.Internal, label.Confidential} {
			d := newDesk()
			policy := &handoff.Policy{Declassify: []handoff.Declassifier{lowering("maker", "reader", label.Internal)}}
			tm := governed(t, policy, cleared("maker", label.Confidential, says(free)), cleared("reader", reads, d.keeps(says("ok"))), member("waiter", says("x")))
			waiter := spec("waiter")
			waiter.DependsOn = []task.Ref{{Task: "maker", Optional: true}}
			res := run(t, tm, nil, scorer(schema), waiter, scopeAll(spec("reader", "waiter")))
			require.NoError(t, res.Err())
			require.Equal(t, reads == label.Confidential, strings.Contains(d.of("reader"), canary), "schema %q", schema)

			d = newDesk()
			tm = governedWith(t, edges("maker>reader"), policy, cleared("maker", label.Confidential, says("x")), cleared("reader", reads, d.keeps(says("ok"))))
			sent := engine.Message{From: "maker", To: "reader", Classification: label.Confidential, Text: free}
			reader := spec("reader")
			reader.Classification = reads
			res, err := tm.RunTasks(t.Context(), []task.Spec{reader}, &engine.RunOptions{Messages: []engine.Message{sent}})
			if reads != label.Confidential {
				requireFaults(t, err, fault{"/messages/0/classification", `"score of maker to reader" lowers only the validated parts of a result`, nil})
				continue
			}
			require.NoError(t, err)
			require.NoError(t, res.Err())
			require.Contains(t, d.of("reader"), canary)
		}
	}
}

// Nor a message that an agent sends in the middle of a run: it waits, and
// the run says for whom.
//
// Requirement: G14.
func TestMessagesOfARunAreNotLowered(t *testing.T) {
	t.Parallel()
	for _, unsafe := range []bool{false, true} {
		d := newDesk()
		lower := lowering("maker", "reader", label.Internal)
		lower.UnsafeText = unsafe
		if unsafe {
			lower.Paths = []task.Path{task.Whole}
		}
		writes := func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
			return agent.Reply{Text: "ok"}, engine.OutboxFrom(ctx).Send("reader", `{"score":"`+canary+`"}`)
		}
		tm := governedWith(t, edges("maker>reader"), &handoff.Policy{Declassify: []handoff.Declassifier{lower}}, cleared("maker", label.Confidential, writes), member("between", says("ok")), member("reader", d.keeps(says("ok"))))
		maker, between := spec("maker"), spec("between", "maker") // the reader comes after the maker, and is given nothing of it
		maker.Classification, between.DependsOn[0].Optional = label.Confidential, true
		res := run(t, tm, &engine.RunOptions{Bus: tm.NewBus()}, maker, between, spec("reader", "between"))
		require.NoError(t, res.Err())
		require.Equal(t, unsafe, strings.Contains(d.of("reader"), canary))
		if !unsafe {
			require.Equal(t, []string{`a message from "maker" to "reader" was not delivered: it is confidential, and its tasks are at most internal`}, res.Warnings)
		}
	}
}

// An agent that reads above what it produces hands on lowered parts only,
// whoever reads them: also one that is cleared, so that its entry lowers nothing.
//
// Requirement: G14.
func TestProducesHoldsForEveryReader(t *testing.T) {
	t.Parallel()
	type setting struct {
		name    string
		level   label.Classification // of what maker reads
		letters label.Classification // that its reader may see
		lowerTo label.Classification
		spy     label.Classification // that a reader of the memory may see; public without one
		asks    bool                 // a coordinator answers from all results
		ok      bool
	}
	for _, tt := range []setting{
		{name: "lowered on the one way", level: label.Confidential, letters: label.Internal, lowerTo: label.Internal, ok: true},
		{name: "the reader is cleared", level: label.Confidential, letters: label.Confidential, lowerTo: label.Internal},
		{name: "a reader of the memory is cleared", level: label.Confidential, letters: label.Internal, lowerTo: label.Internal, spy: label.Confidential},
		{name: "a reader of the memory is not", level: label.Confidential, letters: label.Internal, lowerTo: label.Internal, spy: label.Internal, ok: true},
		{name: "lowered, and not far enough", level: label.Secret, letters: label.Confidential, lowerTo: label.Confidential},
		{name: "the coordinator is cleared", level: label.Confidential, letters: label.Internal, lowerTo: label.Internal, asks: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk()
			maker := cleared("maker", tt.level, says(`{"score":7}`))
			maker.Produces = new(label.Internal)
			c := engine.Config{
				Agents: []engine.Member{maker, cleared("letters", tt.letters, d.keeps(says("ok"))), cleared("spy", max(tt.spy, label.Internal), d.keeps(says("ok")))},
				Policy: &handoff.Policy{Declassify: []handoff.Declassifier{lowering("maker", "letters", tt.lowerTo)}},
			}
			o := &engine.RunOptions{UserAccepts: new(label.Internal)}
			if tt.asks {
				c.Coordinator = &engine.Coordinator{Agent: &planner{plans: []string{twoTasks}}, Accepts: new(label.Confidential)}
				o.UserAccepts, o.Answer = new(label.Confidential), &engine.Goal{Text: "Do it."}
			}
			tm, err := engine.New(c)
			require.NoError(t, err)
			s := scorer(scoreOnly)
			s.Classification = tt.level
			specs := []task.Spec{s, spec("letters", "maker")}
			if tt.spy != label.Public {
				specs = append(specs, scopeAll(spec("spy", "letters")))
			}
			res, err := tm.RunTasks(t.Context(), specs, o)
			if !tt.ok {
				requireRule(t, err, gate.RuleProduces)
				require.Empty(t, d.prompts, "it is refused before anything runs")
				return
			}
			require.NoError(t, err)
			require.NoError(t, res.Err())
			require.Contains(t, d.of("letters"), `from "maker", internal`)
			require.NotContains(t, d.of("spy"), `"score"`)
		})
	}
}
