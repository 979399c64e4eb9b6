package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// A desk notes the prompts of a run, by the agent and the task's title.
type desk struct {
	mu      sync.Mutex // guards prompts
	prompts map[string][]prompt.Prompt
}

func newDesk() *desk { return &desk{prompts: map[string][]prompt.Prompt{}} }

// keeps lets an agent note what it is given.
func (d *desk) keeps(fn agentFunc) agentFunc {
	return func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		d.mu.Lock()
		who := p.Receipt().Agent
		d.prompts[who] = append(d.prompts[who], p)
		d.mu.Unlock()
		return fn(ctx, p)
	}
}

// of is everything that an agent was ever given.
func (d *desk) of(name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var b strings.Builder
	for _, p := range d.prompts[name] {
		fmt.Fprintln(&b, p.System()+"\n"+p.Text())
	}
	return b.String()
}

// handed are the decisions about what an agent reads, without those about its
// retellings.
func (a *audience) handed(to string) []*event.Handoff {
	var out []*event.Handoff
	for _, e := range a.only(event.Handed) {
		if e.Handoff.To == to && !strings.Contains(e.Handoff.Session, "/retell/") {
			out = append(out, e.Handoff)
		}
	}
	return out
}

// governed is a team under a policy.
func governed(t testing.TB, policy *handoff.Policy, members ...engine.Member) *engine.Team {
	t.Helper()
	tm, err := engine.New(engine.Config{Agents: members, Policy: policy})
	require.NoError(t, err)
	return tm
}

// governedWith is [governed] with edges; see [edges].
func governedWith(t testing.TB, list []handoff.Edge, policy *handoff.Policy, members ...engine.Member) *engine.Team {
	t.Helper()
	tm, err := engine.New(engine.Config{Agents: members, Policy: policy, Edges: list})
	require.NoError(t, err)
	return tm
}

// heard collects the events of a run, beside other options.
func (a *audience) with(o engine.RunOptions) *engine.RunOptions {
	o.Subscribers = append(o.Subscribers, a.take)
	return &o
}

// shaped gives a task an object as its result.
func shaped(s task.Spec) task.Spec {
	s.OutputSchema = []byte(`{"type":"object"}`)
	return s
}

const facts = `{"name":"Ada","score":7,"notes":{"private":"hush","public":"open"}}`

// What each combination of mode, allow, block and need lets through, from
// the reply of one agent into the prompt of another.
//
// Requirement: G7.
func TestModesInARun(t *testing.T) {
	t.Parallel()
	type row struct {
		name   string
		rule   handoff.PairRule
		need   []task.Path
		reply  string
		schema bool
		sees   string // empty: its task fails
		not    []string
	}
	score := []task.Path{"/score"}
	tests := []row{
		{"full, structured", handoff.PairRule{Mode: handoff.Full}, nil, facts, true, facts, nil},
		{"full, text", handoff.PairRule{Mode: handoff.Full}, nil, "plain words", false, "plain words", nil},
		{"full with a block", handoff.PairRule{Mode: handoff.Full, Block: []task.Path{"private"}}, nil, facts, true, `"notes":{"public":"open"}`, []string{"hush", "private"}},
		{"full with a block, JSON text", handoff.PairRule{Mode: handoff.Full, Block: []task.Path{"private"}}, nil, "```json\n" + facts + "\n```", false, `"notes":{"public":"open"}`, []string{"hush", "private"}},
		{"full with a block, text", handoff.PairRule{Mode: handoff.Full, Block: []task.Path{"private"}}, nil, "private: hush", false, "", []string{"hush"}},
		{"full with a need", handoff.PairRule{Mode: handoff.Full}, score, facts, true, `{"score":7}`, []string{"Ada", "hush"}},
		{"full with a need, text", handoff.PairRule{Mode: handoff.Full}, score, "score: 7", false, "", []string{"score: 7"}},
		{"full with a need of the whole, text", handoff.PairRule{Mode: handoff.Full}, []task.Path{task.Whole}, "score: 7", false, "score: 7", nil},
		{"scoped", handoff.PairRule{Allow: []task.Path{"/score", "/notes/**"}, Block: []task.Path{"private"}}, nil, facts, true, `{"notes":{"public":"open"},"score":7}`, []string{"Ada", "hush"}},
		{"scoped with a need", handoff.PairRule{Allow: []task.Path{"/score", "/name"}}, score, facts, true, `{"score":7}`, []string{"Ada", "hush"}},
		{"scoped to the whole, text", handoff.PairRule{Allow: []task.Path{task.Whole}}, nil, "plain words", false, "plain words", nil},
		{"scoped, text", handoff.PairRule{Allow: score}, nil, "score: 7", false, "", []string{"score: 7"}},
		{"scoped without a list, with a need", handoff.PairRule{Mode: handoff.Scoped}, score, facts, true, `{"score":7}`, []string{"Ada"}},
		{"scoped, and none of it is there", handoff.PairRule{Allow: []task.Path{"/missing"}}, nil, facts, true, "", []string{"Ada"}},
		{"minimal", handoff.PairRule{Mode: handoff.Minimal}, nil, facts, true, "### maker (by maker)", []string{"Ada", "score", "hush"}},
		{"a block by another spelling", handoff.PairRule{Mode: handoff.Full, Block: []task.Path{"PRI\u200bVATE"}}, nil, facts, true, `"public"`, []string{"hush"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk()
			tt.rule.From, tt.rule.To = "maker", "reader"
			tm := governed(t, &handoff.Policy{Rules: []handoff.PairRule{tt.rule}}, member("maker", says(tt.reply)), member("reader", d.keeps(says("done"))))
			maker, reader := spec("maker"), spec("reader")
			reader.DependsOn = []task.Ref{{Task: "maker", Need: tt.need}}
			if tt.schema {
				maker = shaped(maker)
			}
			res := run(t, tm, nil, maker, reader)
			seen := d.of("reader")
			for _, word := range tt.not {
				require.NotContains(t, seen, word)
			}
			if tt.sees == "" {
				require.Empty(t, seen)
				require.Equal(t, gate.CodeWithheld, of(t, res, "reader").Error.Code)
				require.Contains(t, of(t, res, "reader").Error.Message, "maker→reader", "the rule is named")
				return
			}
			require.NoError(t, res.Err())
			require.Contains(t, seen, tt.sees)
			require.Equal(t, tt.reply, of(t, res, "maker").Result, "what was made is what it was")
		})
	}
}

// What cannot be meant is refused before anything is spent.
//
// Requirement: G7.
func TestContradictingOptionsAreRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		rule handoff.PairRule
		need []task.Path
		says string
	}{
		{"scoped without a list", handoff.PairRule{Mode: handoff.Scoped}, nil, "scoped without a list"},
		{"a need of what is not allowed", handoff.PairRule{Allow: []task.Path{"/score"}}, []task.Path{"/name"}, "nothing that it needs may be delivered"},
		{"a need of what is minimal", handoff.PairRule{Mode: handoff.Minimal}, []task.Path{"/name"}, "by heading and status only"},
		{"an empty need", handoff.PairRule{Mode: handoff.Full}, []task.Path{}, "an empty need grants nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.rule.From, tt.rule.To = "maker", "reader"
			tm := governed(t, &handoff.Policy{Rules: []handoff.PairRule{tt.rule}}, member("maker", never(t)), member("reader", never(t)))
			reader := spec("reader")
			reader.DependsOn = []task.Ref{{Task: "maker", Need: tt.need}}
			_, err := tm.RunTasks(t.Context(), []task.Spec{shaped(spec("maker")), reader}, nil)
			require.ErrorContains(t, err, tt.says)
			var found task.Problems
			require.ErrorAs(t, err, &found)
			require.Equal(t, "/tasks/1/dependsOn/0", found[0].Pointer)
		})
	}
}

// Each result is filtered by the rules for its producer, in whatever order
// the results come.
//
// Requirement: G8.
func TestRulesApplyByProducerInAnyOrder(t *testing.T) {
	t.Parallel()
	const makers = 4
	var first string
	for seed := range uint64(24) {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk()
			order := rand.New(rand.NewPCG(seed, 1)).Perm(makers)
			policy := &handoff.Policy{}
			var members []engine.Member
			var specs []task.Spec
			reader := spec("reader")
			for i := range makers {
				name := fmt.Sprint("maker", i)
				var members0 []string
				for k := range makers {
					members0 = append(members0, fmt.Sprintf(`"f%d":"%d of %d"`, k, k, i))
				}
				reply := says("{" + strings.Join(members0, ",") + "}")
				wait := time.Duration(1+order[i]) * time.Second
				members = append(members, member(name, func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
					if _, err := sleeps(wait)(ctx, p); err != nil {
						return agent.Reply{}, err
					}
					return reply(ctx, p)
				}))
				specs = append(specs, shaped(spec(name)))
				policy.Rules = append(policy.Rules, handoff.PairRule{From: name, To: "reader", Allow: []task.Path{task.Path(fmt.Sprint("/f", i))}})
				reader.DependsOn = append(reader.DependsOn, task.Ref{Task: name})
			}
			members = append(members, member("reader", d.keeps(says("done"))))
			res := run(t, governed(t, policy, members...), nil, append(specs, reader)...)
			require.NoError(t, res.Err())
			seen := d.of("reader")
			for i := range makers {
				for k := range makers {
					part := fmt.Sprintf("%d of %d", k, i)
					require.Equal(t, i == k, strings.Contains(seen, part), part)
				}
			}
			if first == "" {
				first = seen
			}
			require.Equal(t, first, seen, "the order of completion changes no byte")
		})
	}
}

// The order of the rules changes nothing of what anybody reads.
//
// Requirement: G12.
func TestOrderOfRulesInARun(t *testing.T) {
	t.Parallel()
	internal, confidential := label.Internal, label.Confidential
	rules := []handoff.PairRule{
		{From: "maker", To: "reader", Allow: []task.Path{"/name", "/score"}},
		{From: "maker", To: handoff.Anyone, Mode: handoff.Full, Block: []task.Path{"private"}},
		{From: handoff.Anyone, To: "other", Allow: []task.Path{"/notes/**"}},
		{From: handoff.Anyone, To: handoff.Anyone, Block: []task.Path{"/name"}, Ceiling: &confidential},
		{From: handoff.Anyone, To: "reader", Ceiling: &internal},
	}
	var first string
	for seed := range uint64(20) {
		shuffled := slices.Clone(rules)
		rand.New(rand.NewPCG(seed, 2)).Shuffle(len(shuffled), func(i, k int) { shuffled[i], shuffled[k] = shuffled[k], shuffled[i] })
		d := newDesk()
		tm := governed(t, &handoff.Policy{Rules: shuffled}, member("maker", says(facts)), member("reader", d.keeps(says("r"))), member("other", d.keeps(says("o"))))
		res := run(t, tm, nil, shaped(spec("maker")), spec("reader", "maker"), spec("other", "maker"))
		require.NoError(t, res.Err())
		seen := d.of("reader") + d.of("other")
		require.Contains(t, d.of("reader"), `{"score":7}`)
		require.Contains(t, d.of("other"), `{"notes":{"public":"open"}}`)
		require.NotContains(t, seen, "Ada", "blocked for all")
		require.NotContains(t, seen, "hush")
		if first == "" {
			first = seen
		}
		require.Equal(t, first, seen)
	}
}

// bounded is the schema of a score that may be declassified.
const scored = `{"type":"object","required":["score","story"],"properties":{"score":{"type":"number"},"story":{"type":"string"}}}`

// lowering is a policy that lets a score out.
func lowering(from, to string, lowerTo label.Classification) handoff.Declassifier {
	return handoff.Declassifier{Entry: handoff.Entry{Name: "score of " + from + " to " + to, From: from, To: to, Reason: "a number"}, Paths: []task.Path{"/score"}, LowerTo: lowerTo}
}

// What is above a reader arrives by a declassifier's paths alone, with its
// label, and leaves an event with its name; what nobody lowers does not arrive.
//
// Requirement: G14.
func TestDeclassifier(t *testing.T) {
	t.Parallel()
	for _, with := range []bool{true, false} {
		t.Run(fmt.Sprint("with one: ", with), func(t *testing.T) {
			t.Parallel()
			d := newDesk()
			policy := &handoff.Policy{}
			if with {
				policy.Declassify = []handoff.Declassifier{lowering("scorer", "writer", label.Internal)}
			}
			scorer := cleared("scorer", label.Confidential, says(`{"score":7,"story":"`+canary+`"}`))
			tm := governed(t, policy, scorer, member("writer", d.keeps(echo)), cleared("peer", label.Confidential, d.keeps(says("p"))))
			score := spec("scorer")
			score.Uses, score.OutputSchema = []task.Use{{Name: "claim"}}, []byte(scored)
			var a audience
			o := a.with(engine.RunOptions{Inputs: []engine.Input{{Name: "claim", Text: "x", Classification: label.Confidential}}})
			res, err := tm.RunTasks(t.Context(), []task.Spec{score, spec("writer", "scorer"), spec("peer", "scorer")}, o)
			if !with {
				requireRule(t, err, gate.RuleClearance)
				return
			}
			require.NoError(t, err)
			require.NoError(t, res.Err())
			require.Contains(t, d.of("writer"), `from "scorer", internal`)
			require.Contains(t, d.of("writer"), `{"score":7}`)
			require.NotContains(t, d.of("writer"), canary)
			require.Contains(t, d.of("peer"), canary, "whoever is cleared reads on")
			require.Contains(t, d.of("peer"), `from "scorer", confidential`)
			require.Equal(t, label.Internal, of(t, res, "writer").Label)
			lowered := a.only(event.Lowered)
			require.Len(t, lowered, 1)
			require.Equal(t, "score of scorer to writer", lowered[0].Code)
			require.Equal(t, "scorer", lowered[0].From)
			require.Equal(t, "writer", lowered[0].Agent)
			require.Equal(t, of(t, res, "writer").ID, lowered[0].Task)
		})
	}
}

// An agent may read above what it produces if everything that leaves it is lowered.
//
// Requirement: G14.
func TestProducesBelowItsLabel(t *testing.T) {
	t.Parallel()
	declassifiers := map[string]handoff.Declassifier{
		"next": lowering("scorer", "next", label.Internal), "last": lowering("scorer", "last", label.Internal), "user": lowering("scorer", handoff.User, label.Internal),
	}
	tests := []struct {
		name    string
		on      []string
		readers []string
		ok      bool
	}{
		{"none", nil, []string{"next"}, false},
		{"on the one way out", []string{"next"}, []string{"next"}, true},
		{"on one of two", []string{"next"}, []string{"next", "last"}, false},
		{"on both", []string{"next", "last"}, []string{"next", "last"}, true},
		{"to the user, who alone reads it", []string{"user"}, nil, true},
		{"to an agent that does not read it", []string{"next"}, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			policy := &handoff.Policy{}
			for _, to := range tt.on {
				policy.Declassify = append(policy.Declassify, declassifiers[to])
			}
			scorer := cleared("scorer", label.Confidential, says(`{"score":7,"story":"s"}`))
			scorer.Produces = new(label.Internal)
			tm := governed(t, policy, scorer, member("next", says("n")), member("last", says("l")))
			score := spec("scorer")
			score.Uses, score.OutputSchema = []task.Use{{Name: "claim"}}, []byte(scored)
			specs := []task.Spec{score}
			for _, name := range tt.readers {
				specs = append(specs, spec(name, "scorer"))
			}
			o := &engine.RunOptions{UserAccepts: new(label.Internal), Inputs: []engine.Input{{Name: "claim", Text: "x", Classification: label.Confidential}}}
			res, err := tm.RunTasks(t.Context(), specs, o)
			if !tt.ok {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.NoError(t, res.Err())
			require.Equal(t, label.Confidential, of(t, res, "scorer").Label, "a check, never a lowering")
		})
	}
}

// Endorsing and renewing leave their events too.
//
// Requirement: G14.
func TestEndorsedAndRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		policy := &handoff.Policy{
			Rules:   []handoff.PairRule{{From: "maker", To: "reader", Mode: handoff.Full, Translate: &handoff.Translation{Recast: gate.RecastSystem}}},
			Endorse: []handoff.Endorser{{Entry: handoff.Entry{Name: "trusted maker", From: "maker", To: "reader", Reason: "reviewed"}}},
			Renew:   []handoff.Renewal{{Entry: handoff.Entry{Name: "longer life", From: "maker", To: "reader", Reason: "it changes once a day"}, TTL: time.Hour}},
		}
		tm := governed(t, policy, member("maker", says("made")), member("wait", sleeps(time.Minute)), member("reader", d.keeps(says("r"))), member("other", d.keeps(says("o"))))
		maker, other := spec("maker"), spec("other", "wait")
		maker.TTL = 10 * time.Second
		other.DependsOn = append(other.DependsOn, task.Ref{Task: "maker", Optional: true})
		var a audience
		res := run(t, tm, a.options(), maker, spec("wait"), spec("reader", "maker", "wait"), other)
		require.NoError(t, res.Err())
		require.Contains(t, d.of("reader"), "made")
		require.NotContains(t, d.of("other"), "made", "the renewal is for one pair")
		for kind, name := range map[event.Type]string{event.Endorsed: "trusted maker", event.Renewed: "longer life"} {
			list := a.only(kind)
			require.Len(t, list, 1, kind)
			require.Equal(t, name, list[0].Code)
			require.Equal(t, "maker", list[0].From)
			require.Equal(t, "reader", list[0].Agent)
		}
		require.Equal(t, res.StartedAt.Add(time.Hour).UnixNano(), of(t, res, "reader").Envelope.ExpiresAt().UnixNano(), "what is made from it ends with the renewal")
	})
}

// What is secret flows by a rule for the exact pair, and by no other.
//
// Requirement: G15.
func TestSecretFlowsByAnExactRuleOnly(t *testing.T) {
	t.Parallel()
	exact := func(from, to string) handoff.PairRule {
		return handoff.PairRule{From: from, To: to, Mode: handoff.Full}
	}
	tests := []struct {
		name  string
		rules []handoff.PairRule
		ok    bool
	}{
		{"no rule", nil, false},
		{"exact rules", []handoff.PairRule{exact(handoff.User, "maker"), exact("maker", "reader")}, true},
		{"a wildcard for the input", []handoff.PairRule{exact(handoff.Anyone, "maker"), exact("maker", "reader")}, false},
		{"a wildcard for the result", []handoff.PairRule{exact(handoff.User, "maker"), exact("maker", handoff.Anyone)}, false},
		{"an exact rule without a mode", []handoff.PairRule{exact(handoff.User, "maker"), {From: "maker", To: "reader", Block: []task.Path{"x"}}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk()
			tm := governed(t, &handoff.Policy{Rules: tt.rules}, cleared("maker", label.Secret, d.keeps(echo)), cleared("reader", label.Secret, d.keeps(echo)))
			maker := spec("maker")
			maker.Uses = []task.Use{{Name: "key"}}
			o := &engine.RunOptions{UserAccepts: new(label.Secret), Inputs: []engine.Input{{Name: "key", Text: canary, Classification: label.Secret}}}
			res, err := tm.RunTasks(t.Context(), []task.Spec{maker, spec("reader", "maker")}, o)
			if !tt.ok {
				requireRule(t, err, gate.RuleSecret)
				require.Empty(t, d.prompts)
				return
			}
			require.NoError(t, err)
			require.NoError(t, res.Err())
			require.Contains(t, d.of("reader"), canary)
			require.Equal(t, label.Secret, of(t, res, "reader").Label)
		})
	}
}

// A retry is a new contract, with what is fresh then.
//
// Requirement: G18.
func TestEachRetryIsANewContract(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sessions := map[string]bool{}
		tries := 0
		reader := member("reader", func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			sessions[p.Receipt().Session] = true
			if tries++; tries < 3 {
				return agent.Reply{}, errBroken
			}
			return agent.Reply{Text: "at last"}, nil
		})
		var a audience
		again := spec("reader", "maker")
		again.MaxRetries, again.RetryDelay = 5, time.Second
		res := run(t, governed(t, &handoff.Policy{}, member("maker", says("x")), reader), a.options(), spec("maker"), again)
		require.NoError(t, res.Err())
		require.Len(t, sessions, 3)
		handed := map[string]int{}
		for _, h := range a.handed("reader") {
			handed[h.Session]++
			require.True(t, sessions[h.Session])
		}
		require.Len(t, handed, 3, "each attempt is ruled on anew")

		tries = 0
		maker := spec("maker")
		maker.TTL = 900 * time.Millisecond // two waits take at least a second, of which half is chance
		again.RetryBackoff = 1
		res = run(t, governed(t, nil, member("maker", says("x")), reader), nil, maker, again)
		require.Equal(t, gate.CodeWithheld, of(t, res, "reader").Error.Code, "expired between two attempts")
		require.Less(t, tries, 3)
	})
}

// A structured result carries a declared tag by its top-level property.
//
// Requirement: G20.
func TestTagsOfStructuredResults(t *testing.T) {
	t.Parallel()
	for reply, ok := range map[string]bool{`{"checked":true}`: true, `{"inside":{"checked":true}}`: false, `{"other":1}`: false} {
		m := member("a", says(reply))
		m.OutputTags = []string{"checked"}
		s := shaped(spec("a"))
		s.RequiredTags = []string{"checked"}
		res := run(t, governed(t, &handoff.Policy{}, m), nil, s)
		if !ok {
			require.Equal(t, codes.Reply, of(t, res, "a").Error.Code, reply)
			continue
		}
		require.NoError(t, res.Err())
		require.Equal(t, []string{"checked"}, of(t, res, "a").Envelope.Header().Tags)
	}
	s := spec("a")
	s.RequiredTags = []string{"checked"}
	_, err := governed(t, &handoff.Policy{}, member("a", never(t))).Plan([]task.Spec{s}, nil)
	requireRule(t, err, gate.RuleTags)
}

// Numbers are redacted too, and a prompt says what was done to it.
//
// Requirement: G33.
func TestMarksInPrompts(t *testing.T) {
	t.Parallel()
	const iban, card = "DE89370400440532013000", "4111111111111111"
	d := newDesk()
	policy := &handoff.Policy{Rules: []handoff.PairRule{
		{From: "maker", To: "reader", Allow: []task.Path{"/card", "/iban", "/mail"}, Reveal: map[redact.Kind][]task.Path{redact.IBAN: {"/iban"}}},
		{From: "maker", To: "other", Mode: handoff.Full},
	}}
	reply := `{"card":` + card + `,"iban":"` + iban + `","mail":"ada@example.com","rest":"` + iban + `"}`
	tm := governed(t, policy, member("maker", says(reply)), member("reader", d.keeps(says("r"))), member("other", d.keeps(says("o"))))
	var a audience
	res := run(t, tm, a.options(), shaped(spec("maker")), spec("reader", "maker"), spec("other", "maker"))
	require.NoError(t, res.Err())
	require.Contains(t, d.of("reader"), "redacted 2, revealed iban, in parts: data")
	require.Contains(t, d.of("reader"), `{"card":"[REDACTED:card]","iban":"`+iban+`","mail":"[REDACTED:email]"}`)
	require.Contains(t, d.of("other"), "redacted 4: data")
	require.NotContains(t, d.of("other"), iban, "revealed on one edge only")
	require.NotContains(t, d.of("other")+d.of("reader"), card)
	read, other := a.handed("reader")[0], a.handed("other")[0]
	require.Equal(t, redact.Counts{redact.Card: 1, redact.Email: 1}, read.Redacted)
	require.Equal(t, redact.Counts{redact.IBAN: 1}, read.Revealed)
	require.Equal(t, redact.Counts{redact.Card: 1, redact.Email: 1, redact.IBAN: 2}, other.Redacted)
	require.Empty(t, other.Revealed)
}
