package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// echo is an agent that answers with its prompt, as a careless model may.
func echo(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
	return agent.Reply{Text: "I read:\n" + p.Text()}, nil
}

// A task sees its own dependencies and inputs, and nothing else of the run.
//
// Requirement: G1.
func TestOnlyWhatIsGrantedArrives(t *testing.T) {
	t.Parallel()
	prompts := map[string]string{}
	keep := func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		title := strings.SplitN(strings.TrimPrefix(p.Text(), "# Task: "), "\n", 2)[0]
		prompts[title] = p.Text()
		return agent.Reply{Text: "result of " + title}, nil
	}
	use := by("a", spec("reads input"))
	use.Uses = []task.Use{{Name: "one"}}
	res := run(t, newTeam(t, member("a", keep)), &engine.RunOptions{MaxConcurrency: 1, Inputs: []engine.Input{{Name: "one", Text: "input one"}, {Name: "two", Text: "input two"}}},
		by("a", spec("first")), by("a", spec("second", "first")), by("a", spec("third", "second")), use)
	require.True(t, res.Success())
	require.Equal(t, "# Task: first\n\nDo first.", prompts["first"], "a clean slate")
	require.Contains(t, prompts["third"], "result of second")
	require.NotContains(t, prompts["third"], "result of first", "nor what its dependency read")
	require.Contains(t, prompts["reads input"], "input one")
	for title, text := range prompts {
		require.NotContains(t, text, "input two", title)
		if title != "reads input" {
			require.NotContains(t, text, "input one", title)
		}
	}
}

// drawLabels makes a random team with labels everywhere.
func drawLabels(rt *rapid.T) ([]engine.Member, []task.Spec, *engine.RunOptions) {
	level := func(name string) label.Classification {
		return rapid.SampledFrom([]label.Classification{label.Public, label.Internal, label.Confidential, label.Secret}).Draw(rt, name)
	}
	var members []engine.Member
	for a := range rapid.IntRange(2, 4).Draw(rt, "agents") {
		fail := rapid.SampledFrom([]bool{true, false, false})
		broken := map[task.ID]bool{}
		for i := range 10 {
			broken[task.NewID(fmt.Sprint("task ", i))] = fail.Draw(rt, "fails")
		}
		members = append(members, cleared(fmt.Sprint("agent ", a), level("accepts"), func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			if broken[p.Receipt().Task] {
				return agent.Reply{}, errBroken
			}
			return agent.Reply{Text: "x"}, nil
		}))
	}
	o := &engine.RunOptions{UserAccepts: new(label.Secret), MaxConcurrency: 3}
	for k := range rapid.IntRange(0, 2).Draw(rt, "inputs") {
		o.Inputs = append(o.Inputs, engine.Input{Name: fmt.Sprint("input ", k), Text: "x", Classification: level("input")})
	}
	var specs []task.Spec
	for i := range rapid.SampledFrom([]int{3, 5, 10}).Draw(rt, "tasks") {
		s := task.Spec{Title: fmt.Sprint("task ", i), Description: "x", Classification: level("task"), Assignee: rapid.SampledFrom(members).Draw(rt, "assignee").Name}
		for _, in := range o.Inputs {
			if rapid.IntRange(0, 4).Draw(rt, "uses") == 0 {
				s.Uses = append(s.Uses, task.Use{Name: in.Name})
			}
		}
		for j := range i {
			switch rapid.SampledFrom([]string{"none", "none", "none", "required", "optional", "optional"}).Draw(rt, "edge") {
			case "required":
				s.DependsOn = append(s.DependsOn, task.Ref{Task: fmt.Sprint("task ", j)})
			case "optional":
				s.DependsOn = append(s.DependsOn, task.Ref{Task: fmt.Sprint("task ", j), Optional: true})
			}
		}
		specs = append(specs, s)
	}
	return members, specs, o
}

// No label of a run is above the plan's, and so what the plan allows is
// never refused in the middle; what the plan says is withheld is.
//
// Requirement: G48.
func TestLabelsStayBelowThePlan(t *testing.T) {
	t.Parallel()
	planned := 0
	rapid.Check(t, func(rt *rapid.T) {
		members, specs, o := drawLabels(rt)
		// Specs that the check refuses teach nothing here: give each agent what its tasks need.
		tm, err := engine.New(engine.Config{Agents: members})
		require.NoError(rt, err)
		p, err := tm.Plan(specs, o)
		for round := 0; err != nil && round < 12; round++ {
			specs = mend(specs, members, err)
			p, err = tm.Plan(specs, o)
		}
		if err != nil {
			rt.Skip("contradictory", err)
		}
		planned++
		res, err := tm.RunTasks(t.Context(), specs, o)
		require.NoError(rt, err)
		for i := range res.Tasks {
			out := &res.Tasks[i]
			require.LessOrEqual(rt, out.Label, p.Tasks[i].Label, out.Title)
			if out.Error != nil {
				require.Contains(rt, []string{"AGENT_ERROR", codes.Dependency}, out.Error.Code, out.Error.Message)
			}
			for _, receipt := range out.Receipts {
				require.LessOrEqual(rt, receipt.Classification, p.Tasks[i].Label)
				require.LessOrEqual(rt, receipt.Classification, p.Agents[agentOf(members, out.Assignee)].Clearance)
				withheld := map[string]bool{}
				for _, s := range receipt.Sources {
					if s.Decision != nil && s.Decision.Verdict != gate.Passed {
						withheld[s.Decision.Source.Name] = true
					}
				}
				for _, r := range p.Tasks[i].Reads {
					if r.Withheld != "" {
						require.True(rt, withheld[string(r.Task)], "%s was to be withheld from %s", r.Name, out.Title)
					}
				}
			}
			if out.Envelope != nil {
				require.Equal(rt, out.Label, out.Envelope.Classification())
			}
		}
	})
	require.Positive(t, planned)
}

func agentOf(members []engine.Member, name string) int {
	for i := range members {
		if members[i].Name == name {
			return i
		}
	}
	return -1
}

// mend takes away what each problem is about.
func mend(specs []task.Spec, members []engine.Member, err error) []task.Spec {
	out := append([]task.Spec(nil), specs...)
	for _, p := range err.(task.Problems) {
		var i, j int
		if n, _ := fmt.Sscanf(p.Pointer, "/tasks/%d/dependsOn/%d", &i, &j); n == 2 {
			deps := append([]task.Ref(nil), out[i].DependsOn...)
			deps[j].Optional = true
			out[i].DependsOn = deps
		} else if n, _ := fmt.Sscanf(p.Pointer, "/tasks/%d/uses/%d", &i, &j); n == 2 {
			out[i].Uses = nil
		} else if n, _ := fmt.Sscanf(p.Pointer, "/tasks/%d/classification", &i); n == 1 {
			out[i].Uses = nil
			out[i].Classification = min(out[i].Classification, members[agentOf(members, out[i].Assignee)].Accepts)
			deps := append([]task.Ref(nil), out[i].DependsOn...)
			for k := range deps {
				deps[k].Optional = true
			}
			out[i].DependsOn = deps
		}
	}
	return out
}

// The bound holds also where an optional result comes out lower than planned.
//
// Requirement: G48.
func TestOptionalResultWithALowerLabel(t *testing.T) {
	t.Parallel()
	public := label.Public
	fails := cleared("fails", label.Confidential, fails(errBroken))
	low := member("low", says("x"))
	source, middle, reader := spec("fails"), spec("middle"), spec("low")
	source.Classification, reader.Classification = label.Confidential, public
	middle.DependsOn = []task.Ref{{Task: "fails", Optional: true}}
	reader.DependsOn = []task.Ref{{Task: "middle", Optional: true}}
	tm := newTeam(t, fails, cleared("middle", label.Confidential, says("m")), low)
	p, err := tm.Plan([]task.Spec{source, middle, reader}, nil)
	require.NoError(t, err)
	require.Equal(t, label.Internal, p.Tasks[2].Label)
	require.Empty(t, p.Tasks[2].Reads[0].Withheld, "it is not certain")
	res := run(t, tm, nil, source, middle, reader)
	require.Equal(t, label.Internal, of(t, res, "middle").Label)
	require.Equal(t, label.Internal, of(t, res, "low").Label)

	low.Produces = &public
	_, err = newTeam(t, fails, cleared("middle", label.Confidential, says("m")), low).Plan([]task.Spec{source, middle, reader}, nil)
	requireRule(t, err, gate.RuleProduces)
}

// The label of a result is computed; the agent's claim lowers nothing.
//
// Requirement: G13.
func TestClaimedLabelLowersNothing(t *testing.T) {
	t.Parallel()
	claims := func(level label.Classification) agentFunc {
		return func(context.Context, prompt.Prompt) (agent.Reply, error) {
			return agent.Reply{Text: "x", Claim: &level}, nil
		}
	}
	s := spec("a")
	s.Uses = []task.Use{{Name: "claim"}}
	o := &engine.RunOptions{Inputs: []engine.Input{{Name: "claim", Classification: label.Confidential}}}
	for level := label.Public; level <= label.Confidential; level++ {
		res := run(t, newTeam(t, cleared("a", label.Confidential, claims(level))), o, s)
		require.Equal(t, label.Confidential, of(t, res, "a").Label)
		require.Equal(t, label.Confidential, of(t, res, "a").Envelope.Classification())
	}
	res := run(t, newTeam(t, cleared("a", label.Confidential, claims(label.Secret))), o, s)
	require.Equal(t, "REPLY_REFUSED", of(t, res, "a").Error.Code)
	require.Contains(t, of(t, res, "a").Error.Message, "claims to be secret")
}

// Requirement: G20.
func TestTags(t *testing.T) {
	t.Parallel()
	reply := func(text string, tags ...string) agentFunc {
		return func(context.Context, prompt.Prompt) (agent.Reply, error) {
			return agent.Reply{Text: text, Tags: tags}, nil
		}
	}
	tests := []struct {
		name  string
		agent agentFunc
		want  []string // tags of the result; nil: refused
	}{
		{"claimed", reply("x", "checked"), []string{"checked"}},
		{"missing", reply("x"), nil},
		{"not declared", reply("x", "checked", "approved"), nil},
		{"declared and not required", reply("x", "spare", "checked"), []string{"checked", "spare"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := member("a", tt.agent)
			m.OutputTags = []string{"checked", "spare"}
			s := retrying("a", 2)
			s.RequiredTags = []string{"checked"}
			res := run(t, newTeam(t, m), nil, s)
			if tt.want == nil {
				require.Equal(t, "REPLY_REFUSED", of(t, res, "a").Error.Code)
				require.Equal(t, 1, of(t, res, "a").Metrics.Attempts, "a refusal is final")
				return
			}
			require.Equal(t, tt.want, of(t, res, "a").Envelope.Header().Tags)
		})
	}
}

// Expiry is checked when the reader starts.
//
// Requirement: G16.
func TestResultThatExpires(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		wait     time.Duration
		optional bool
		code     string
		prompt   string
	}{
		{"before", 10*time.Second - time.Nanosecond, false, "", "short-lived"},
		{"at it", 10 * time.Second, false, gate.CodeWithheld, ""},
		{"after it", time.Minute, false, gate.CodeWithheld, ""},
		{"optional", time.Minute, true, "", "### source (by source)\n[withheld: expired; status completed]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				source, reader := spec("source"), spec("reader", "wait")
				source.TTL = 10 * time.Second
				reader.DependsOn = append(reader.DependsOn, task.Ref{Task: "source", Optional: tt.optional})
				reader.MaxRetries = 3
				res := run(t, newTeam(t, member("source", says("short-lived")), member("wait", sleeps(tt.wait)), member("reader", echo)), nil, source, spec("wait"), reader)
				if tt.wait < source.TTL {
					require.Equal(t, "short-lived", of(t, res, "source").Result)
				} else {
					require.Equal(t, "[withheld: expired]", of(t, res, "source").Result, "the caller is a reader too, at the end of the run")
				}
				r := of(t, res, "reader")
				if tt.code != "" {
					require.Equal(t, tt.code, r.Error.Code)
					require.Contains(t, r.Error.Message, `dependency from "source" is withheld by expiry`)
					require.Equal(t, 1, r.Metrics.Attempts)
					return
				}
				require.Contains(t, r.Result, tt.prompt)
			})
		})
	}
}

// Requirement: G16.
func TestInputThatExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		early, late := spec("early"), spec("late", "wait")
		early.Uses, late.Uses = []task.Use{{Name: "code"}}, []task.Use{{Name: "code"}}
		res := run(t, newTeam(t, member("early", echo), member("wait", sleeps(time.Minute)), member("late", echo)),
			&engine.RunOptions{Inputs: []engine.Input{{Name: "code", Text: "4711", TTL: time.Minute}}}, early, spec("wait"), late)
		require.Equal(t, "[withheld: expired]", of(t, res, "early").Result, "at the end of the run")
		require.Equal(t, res.StartedAt.Add(time.Minute).UnixNano(), of(t, res, "early").Envelope.ExpiresAt().UnixNano(), "what is made from it ends with it")
		require.Equal(t, gate.CodeWithheld, of(t, res, "late").Error.Code)
		require.Contains(t, of(t, res, "late").Error.Message, `input from "user" is withheld by expiry`)
	})
}

// Requirement: G16.
func TestResultExpiresWithItsEarliestSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long, short, mix := spec("long"), spec("short"), spec("mix", "long", "short")
		long.TTL, short.TTL, mix.TTL = time.Hour, time.Minute, 2*time.Hour
		res := run(t, newTeam(t, member("long", says("x")), member("short", says("x")), member("mix", says("x"))), nil, long, short, mix)
		require.Equal(t, res.StartedAt.Add(time.Minute).UnixNano(), of(t, res, "mix").Envelope.ExpiresAt().UnixNano())
	})
}

// everything is all that a run shows the caller.
func everything(t *testing.T, res *engine.Result, heard *audience) string {
	t.Helper()
	var b strings.Builder
	raw, err := json.Marshal(res)
	require.NoError(t, err)
	b.Write(raw)
	for _, e := range heard.events {
		raw, err := json.Marshal(e)
		require.NoError(t, err)
		b.Write(raw)
	}
	fmt.Fprint(&b, res.Output, res.Err(), res.Cause, res.Warnings)
	for i := range res.Tasks {
		out := &res.Tasks[i]
		fmt.Fprint(&b, out.Result, out.Structured, out.Description, out.Error)
		fmt.Fprintf(&b, "%v %+v %s", out.Envelope, out.Envelope, out.Envelope)
		raw, err := json.Marshal(out.Receipts)
		require.NoError(t, err)
		b.Write(raw)
	}
	return b.String()
}

const canary = "canary-b1f5"

// Above the caller's clearance every output shows only the label.
//
// Requirement: G47.
func TestCanaryStaysInside(t *testing.T) {
	t.Parallel()
	panics := func(context.Context, prompt.Prompt) (agent.Reply, error) { panic(canary) }
	tests := []struct {
		name   string
		agent  agentFunc
		schema string
	}{
		{"in a result", says("the word is " + canary), ""},
		{"in a structured result", says(`{"word":"` + canary + `"}`), `{"type":"object"}`},
		{"in an error", fails(fmt.Errorf("cannot use %s", canary)), ""},
		{"in a panic", panics, ""},
		{"in an echo of the prompt", echo, ""},
		{"in what does not match the schema", says(`{"word":"` + canary + `"}`), `{"type":"object","properties":{"word":{"const":"` + canary + `-"}}}`},
	}
	for _, tt := range tests {
		for _, level := range []label.Classification{label.Confidential, label.Secret} {
			t.Run(fmt.Sprint(tt.name, " of a task that is ", level), func(t *testing.T) {
				t.Parallel()
				tm := newTeam(t, cleared("a", label.Secret, tt.agent), member("b", says("x")))
				s, after := spec("a"), spec("b")
				s.Classification, s.MaxRetries, s.RetryDelay = level, 1, task.NoDelay
				s.Description = "Say " + canary + "."
				if tt.schema != "" {
					s.OutputSchema = []byte(tt.schema)
				}
				after.DependsOn = []task.Ref{{Task: "a", Optional: true}}
				var heard audience
				res := run(t, tm, heard.options(), s, after)
				if level == label.Secret {
					require.NotContains(t, everything(t, res, &heard), canary)
					require.Contains(t, everything(t, res, &heard), "[withheld: secret]")
					require.Empty(t, of(t, res, "a").Structured)
				} else {
					require.Contains(t, everything(t, res, &heard), canary, "within the clearance it is there: the test can fail")
				}
				o := heard.options()
				o.UserAccepts, o.Reveal = new(label.Secret), true
				res = run(t, tm, o, s, after)
				require.Contains(t, everything(t, res, &heard), canary, "revealed")
			})
		}
	}
}

// Requirement: G42.
func TestNoEventCarriesAPayload(t *testing.T) {
	t.Parallel()
	var heard audience
	o := heard.options()
	o.Inputs = []engine.Input{{Name: "x", Text: canary}}
	s := spec("a")
	s.Uses = []task.Use{{Name: "x"}}
	res := run(t, newTeam(t, member("a", echo), member("b", echo)), o, s, spec("b", "a"))
	require.Contains(t, res.Output, canary)
	for _, e := range heard.events {
		raw, err := json.Marshal(e)
		require.NoError(t, err)
		require.NotContains(t, string(raw), canary, e.Type)
	}
	require.Len(t, heard.only(event.AgentStart), 2)
}

// Credentials are redacted on every edge, whatever their source.
func TestCredentialsAreRedacted(t *testing.T) {
	t.Parallel()
	key := "gh" + "p_" + strings.Repeat("Ab1C2d", 6) // fake
	var seen string
	reader := member("reader", func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		seen = p.Text()
		return agent.Reply{Text: "the key was " + key}, nil
	})
	var heard audience
	o := heard.options()
	o.Inputs = []engine.Input{{Name: "mail", Text: "my key is " + key}}
	s := spec("reader", "leaky")
	s.Uses = []task.Use{{Name: "mail"}}
	res := run(t, newTeam(t, member("leaky", says("use "+key+" please")), reader, member("broken", fails(fmt.Errorf("denied for %s", key)))), o, spec("leaky"), s, spec("broken", "reader"))
	require.NotContains(t, seen, key)
	require.Equal(t, 2, strings.Count(seen, "[REDACTED:token]"))
	require.Contains(t, seen, `from "leaky", internal, redacted 1: data`)
	require.NotContains(t, everything(t, res, &heard), key)
	require.Equal(t, "use [REDACTED:token] please", of(t, res, "leaky").Result)
	require.Equal(t, "denied for [REDACTED:token]", of(t, res, "broken").Error.Message)
}

func TestCodesOfDependencies(t *testing.T) {
	t.Parallel()
	large := `{"text":"` + strings.Repeat("x", gate.DefaultStructuredBytes) + `"}`
	source := spec("source")
	source.OutputSchema = []byte(`{"type":"object"}`)
	as := func(p task.Payload, optional bool) task.Spec {
		s := spec("reader")
		s.DependsOn = []task.Ref{{Task: "source", As: p, Optional: optional}}
		return s
	}
	tests := []struct {
		name   string
		source task.Spec
		reply  string
		reader task.Spec
		code   string
		seen   string
	}{
		{"structured", source, `{"b":1, "a":2}`, as(task.Structured, false), "", "#### Validated structured result\n"},
		{"both", source, `{"b":1, "a":2}`, as(task.Both, false), "", "#### Raw output\n"},
		{"too large", source, large, as(task.Structured, false), "DEPENDENCY_PAYLOAD_TOO_LARGE", ""},
		{"keys that would be written alike", source, `{"<|im_start|>": 1, "<·|im_start|>": 2}`, as(task.Structured, false), "DEPENDENCY_STRUCTURED_SERIALIZATION_FAILED", ""},
		{"too large, optional", source, large, as(task.Structured, true), "", "[withheld: rule; status completed]"},
		{"a text is cut instead", source, `{"text":"` + strings.Repeat("x", gate.DefaultContextBytes) + `"}`, as(task.Output, false), "", ", cut 256 of "},
		{"missing, optional", spec("source"), "x", as(task.Structured, true), "", "[withheld: rule; status completed]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res := run(t, newTeam(t, member("source", says(tt.reply)), member("reader", echo)), nil, tt.source, tt.reader)
			r := of(t, res, "reader")
			if tt.code != "" {
				require.Equal(t, tt.code, r.Error.Code)
				require.Empty(t, r.Receipts, "before its agent is called")
				return
			}
			require.NoError(t, res.Err())
			require.Contains(t, r.Result, tt.seen)
		})
	}
}

// That a structured result is missing is certain beforehand, so a run does not
// get there: the check refuses it, and the gate's answer keeps its code.
func TestCodeOfAMissingStructuredResult(t *testing.T) {
	t.Parallel()
	_, err := newTeam(t, member("source", says("x")), member("reader", never(t))).Plan([]task.Spec{spec("source"), {Title: "reader", Description: "x", Assignee: "reader", DependsOn: []task.Ref{{Task: "source", As: task.Structured}}}}, nil)
	requireFaults(t, err, fault{"/tasks/1/dependsOn/0", "outputSchema", task.ErrInvalid})
	held := &gate.WithheldError{Decision: gate.Decision{Rule: gate.RulePayload}}
	res := run(t, newTeam(t, member("a", fails(held))), nil, spec("a"))
	require.Equal(t, "DEPENDENCY_STRUCTURED_RESULT_MISSING", of(t, res, "a").Error.Code)
}

func TestPromptTooLarge(t *testing.T) {
	t.Parallel()
	source := spec("source")
	source.OutputSchema = []byte(`{"type":"string"}`)
	var specs []task.Spec
	reader := by("b", spec("reader"))
	for i := range 9 {
		s := source
		s.Title = fmt.Sprint("source ", i)
		specs = append(specs, s)
		reader.DependsOn = append(reader.DependsOn, task.Ref{Task: s.Title, As: task.Structured})
	}
	reader.MaxRetries = 2
	res := run(t, newTeam(t, member("source", says(`"`+strings.Repeat("x", gate.DefaultStructuredBytes-2)+`"`)), member("b", never(t))), nil, append(specs, reader)...)
	require.Equal(t, "PROMPT_TOO_LARGE", of(t, res, "reader").Error.Code)
	require.Equal(t, 1, of(t, res, "reader").Metrics.Attempts)
	require.ErrorIs(t, res.Err(), brief.ErrTooLarge)
}

func TestTextsAboveTheCapAreCut(t *testing.T) {
	t.Parallel()
	var specs []task.Spec
	reader := by("b", spec("reader"))
	for i := range 6 {
		specs = append(specs, by("a", spec(fmt.Sprint("source ", i))))
		reader.DependsOn = append(reader.DependsOn, task.Ref{Task: fmt.Sprint("source ", i)})
	}
	res := run(t, newTeam(t, member("a", says(strings.Repeat("x", 100<<10))), member("b", echo)), nil, append(specs, reader)...)
	require.NoError(t, res.Err())
	require.LessOrEqual(t, len(of(t, res, "reader").Result), brief.DefaultBytes+len("I read:\n"))
	require.Equal(t, 6, strings.Count(of(t, res, "reader").Result, " of 100 KiB: data"))
	require.Len(t, res.Warnings, 6)
	require.Contains(t, res.Warnings[0], `task "reader": the result of "source 0" was cut from 100 KiB to `)
}

func TestSchemaOfTheAgentHoldsToo(t *testing.T) {
	t.Parallel()
	m := member("a", says(`{"score": "high"}`))
	m.OutputSchema = []byte(`{"type":"object","properties":{"score":{"type":"number"}}}`)
	res := run(t, newTeam(t, m), nil, spec("a"))
	require.Equal(t, "OUTPUT_SCHEMA_INVALID", of(t, res, "a").Error.Code)
	own := spec("a")
	own.OutputSchema = []byte(`{"type":"object","properties":{"score":{"type":"string"}}}`)
	res = run(t, newTeam(t, m), nil, own)
	require.Equal(t, `{"score":"high"}`, of(t, res, "a").Structured, "the task's own schema comes first")
}
