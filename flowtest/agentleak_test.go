package flowtest_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/flowtest"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/spec"
	"github.com/runteam/runteam/task"
)

// A scenario is a request that needs some fields of a vault of records, and no others.
type scenario struct {
	ID        string `json:"scenario_id"`
	Objective struct {
		Request string `json:"user_request"`
	}
	Vault struct {
		Records []struct {
			Type   string `json:"record_type"`
			Fields map[string]any
		}
	} `json:"private_vault"`
	Allowed struct {
		Fields    []string
		Forbidden []string `json:"forbidden_fields"`
	} `json:"allowed_set"`
	Evaluation struct{ Canaries []string }
}

// A tally counts values over all scenarios.
type tally struct {
	mu sync.Mutex // guards what follows

	scenarios, withoutAllowed int
	forbidden                 int // values outside the allowed fields
	watched                   int // of these, looked for in everything that was written
	ambiguous                 int // not planted, because they are short or also occur in an allowed field or the request
	leaked                    int // values that stood in an answer or a prompt outside the allowed fields
	allowed, kept             int // values of allowed fields, and those that arrived
	canaries, allowedCanaries int // of the corpus, and those in allowed fields
	faults                    []string
}

func (s *scenario) allows(field string) bool { return slices.Contains(s.Allowed.Fields, field) }

// TestAgentLeak gives the vault of each scenario to one agent, grants another the allowed
// fields, and searches for everything else wherever it could be written. All kinds of
// personal data are revealed in the allowed fields, so that the result depends on what was
// granted alone; secrets stay redacted.
//
// Requirement: G42.
func TestAgentLeak(t *testing.T) {
	t.Parallel()
	scenarios, every := corpus(t), 24
	if slowtest.Enabled() && !slowtest.RaceDetector { // the race detector needs no more than a part
		every = 1
	}
	var sum tally
	t.Run("scenarios", func(t *testing.T) {
		const shards = 8
		for shard := range shards {
			t.Run(fmt.Sprint(shard), func(t *testing.T) {
				t.Parallel()
				for i := shard * every; i < len(scenarios); i += shards * every {
					sum.try(t, &scenarios[i], i/every%2 == 0)
				}
			})
		}
	})
	t.Logf("%d scenarios (%d without an allowed field in the vault): %d values outside the allowed fields, %d of them looked for everywhere (%d are short, or stand in an allowed field or the request too), %d leaked",
		sum.scenarios, sum.withoutAllowed, sum.forbidden, sum.watched, sum.ambiguous, sum.leaked)
	t.Logf("%d values in allowed fields, %d kept (%.2f %%); %d canaries, %d of them in allowed fields", sum.allowed, sum.kept, 100*float64(sum.kept)/float64(sum.allowed), sum.canaries, sum.allowedCanaries)
	require.Empty(t, strings.Join(sum.faults, "\n"))
	require.Zero(t, sum.leaked)
	require.NotZero(t, sum.watched)
	require.GreaterOrEqual(t, float64(sum.kept), 0.99*float64(sum.allowed))
}

func corpus(t *testing.T) (out []scenario) {
	t.Helper()
	f, err := os.Open("../../shared/corpora/agentleak/scenarios.jsonl.gz")
	if os.IsNotExist(err) || err != nil && strings.Contains(err.Error(), fs.ErrPermission.Error()) {
		t.Skip("the corpus is not there: ../shared/corpora/agentleak, beside the repository")
	}
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var s scenario
		require.NoError(t, json.Unmarshal(lines.Bytes(), &s))
		out = append(out, s)
	}
	require.NoError(t, lines.Err())
	return out
}

// try runs a scenario; byTask grants the fields by the need of the task, and
// else a rule of the policy does.
func (sum *tally) try(t *testing.T, s *scenario, byTask bool) {
	tb := &fake{TB: t}
	f := flowtest.LoadOptions(tb, spec.Options{Path: "-", Stdin: strings.NewReader(s.spec(byTask))})
	f.Agent("vault", engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return s.open() }))
	var got map[string]map[string]int
	f.Agent("reader", engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		var text string
		got, text = read(p)
		return agent.Reply{Text: text}, nil
	}))
	watched, ambiguous, leaked := s.watch(f)
	finished := make(chan struct{})
	go func() { // a failure ends the goroutine, not the test
		defer close(finished)
		f.Run(tb)
	}()
	<-finished

	sum.mu.Lock()
	defer sum.mu.Unlock()
	sum.scenarios++
	sum.watched += watched
	sum.ambiguous += ambiguous
	sum.leaked += leaked(tb.errors)
	for _, e := range tb.errors {
		sum.faults = append(sum.faults, s.ID+": "+e)
	}
	sum.compare(s, got)
}

// compare counts what arrived at the reader against what it was granted.
func (sum *tally) compare(s *scenario, got map[string]map[string]int) {
	want, allowed, canaries := map[string]map[string]int{}, 0, map[string]bool{}
	for _, r := range s.Vault.Records {
		for field, v := range r.Fields {
			if s.allows(field) {
				allowed += collect(want, field, v)
			} else {
				sum.forbidden += collect(map[string]map[string]int{}, field, v)
			}
			for _, c := range s.Evaluation.Canaries {
				if strings.Contains(fmt.Sprint(v), c) && s.allows(field) {
					canaries[c] = true
				}
			}
		}
	}
	sum.canaries += len(s.Evaluation.Canaries)
	sum.allowedCanaries += len(canaries)
	sum.allowed += allowed
	if allowed == 0 {
		sum.withoutAllowed++
	}
	for field, values := range got {
		for value, n := range values {
			if !s.allows(field) {
				sum.leaked += n
				sum.faults = append(sum.faults, fmt.Sprintf("%s: %s was delivered: %s", s.ID, field, value))
			}
			sum.kept += min(n, want[field][value])
		}
	}
}

// collect counts the values of a field.
func collect(into map[string]map[string]int, field string, v any) int {
	if list, ok := v.([]any); ok {
		n := 0
		for _, e := range list {
			n += collect(into, field, e)
		}
		return n
	}
	if into[field] == nil {
		into[field] = map[string]int{}
	}
	into[field][fmt.Sprint(v)]++
	return 1
}

// read returns what was delivered, by fields, and all of it as a text.
func read(p prompt.Prompt) (map[string]map[string]int, string) {
	got, text := map[string]map[string]int{}, "nothing was delivered"
	for _, s := range p.Sections() {
		var v struct{ Records []map[string]any }
		if s.JSON == "" || json.Unmarshal([]byte(s.JSON), &v) != nil {
			continue
		}
		text = s.JSON
		for _, r := range v.Records {
			for field, value := range r {
				collect(got, field, value)
			}
		}
	}
	return got, text
}

// open is the reply of the agent that has the vault.
func (s *scenario) open() (agent.Reply, error) {
	records := make([]any, len(s.Vault.Records))
	for i, r := range s.Vault.Records {
		records[i] = r.Fields
	}
	raw, err := json.Marshal(map[string]any{"records": records})
	if err != nil {
		return agent.Reply{}, err
	}
	v, err := jsonvalue.Parse(string(raw))
	return agent.Reply{Text: string(raw), JSON: v}, err
}

// verdicts are words that every record of decisions has.
const verdicts = "passed held"

// watch plants the values outside of the allowed fields that occur nowhere else.
func (s *scenario) watch(f *flowtest.Flow) (watched, ambiguous int, leaked func([]string) int) {
	said := []string{s.Objective.Request, s.spec(true), s.spec(false), verdicts}
	for _, r := range s.Vault.Records {
		for field, v := range r.Fields {
			if s.allows(field) {
				said = append(said, fmt.Sprint(v))
			}
		}
	}
	public := strings.ToLower(strings.Join(said, "\n"))
	var words []string
	for i, r := range s.Vault.Records {
		for _, field := range slices.Sorted(maps.Keys(r.Fields)) {
			if s.allows(field) {
				continue
			}
			values := map[string]map[string]int{}
			ambiguous += collect(values, field, r.Fields[field])
			list, isList := r.Fields[field].([]any)
			if !isList {
				list = []any{r.Fields[field]}
			}
			for k, v := range list {
				text, ok := v.(string)
				if !ok || len(text) < 6 || byChance(text) || strings.Contains(public, strings.ToLower(text)) {
					continue
				}
				path := task.Path(fmt.Sprintf("/records/%d%s", i, naming.Pointer(field)))
				if isList {
					path += task.Path(fmt.Sprintf("/%d", k))
				}
				f.Never(f.PlantText("Open the vault", path, text), flowtest.Everybody)
				words = append(words, text)
				watched, ambiguous = watched+1, ambiguous-1
			}
		}
	}
	return watched, ambiguous, func(errs []string) (n int) {
		for _, w := range words {
			if slices.ContainsFunc(errs, func(e string) bool { return strings.Contains(e, "("+w+")") }) {
				n++
			}
		}
		return n
	}
}

// spec returns the team of a scenario: one agent has the vault, another is
// granted the allowed fields, and the caller sees what the other one writes.
func (s *scenario) spec(byTask bool) string {
	properties := map[string]any{}
	for _, field := range s.Allowed.Fields {
		properties[field] = map[string]any{}
	}
	for _, r := range s.Vault.Records {
		for field, v := range r.Fields {
			properties[field] = map[string]any{"type": []string{"string", "number"}}
			if _, ok := v.([]any); ok {
				properties[field] = map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
			}
		}
	}
	var paths []string
	for _, field := range s.Allowed.Fields {
		paths = append(paths, "/records/*"+naming.Pointer(field)+"/**")
	}
	reveal := map[string][]string{}
	for _, kind := range []redact.Kind{redact.Card, redact.IBAN, redact.Email, redact.Phone, redact.SSN} {
		reveal[string(kind)] = paths
	}
	rule := map[string]any{"from": "vault", "to": "reader", "reveal": reveal}
	on := map[string]any{"task": "Open the vault", "optional": true} // a vault may have none of the fields
	if byTask {
		on["need"] = paths
	} else {
		rule["mode"], rule["allow"] = "scoped", paths
	}
	text, err := json.Marshal(map[string]any{
		"name": "agentleak", "model": "none",
		"agents": []any{
			map[string]any{"name": "vault", "accepts": "confidential", "systemPrompt": "You return records."},
			map[string]any{"name": "reader", "accepts": "confidential", "systemPrompt": "You answer."},
		},
		"tasks": []any{
			map[string]any{"title": "Open the vault", "assignee": "vault", "classification": "confidential", "description": "Return all records.", "outputSchema": map[string]any{
				"type": "object", "properties": map[string]any{"records": map[string]any{"type": "array", "items": map[string]any{"type": "object", "properties": properties}}},
			}},
			map[string]any{"title": "Answer", "assignee": "reader", "description": s.Objective.Request, "dependsOn": []any{on}},
		},
		"policy": map[string]any{"rules": []any{rule, map[string]any{"from": "vault", "to": "user", "mode": "minimal"}}},
	})
	if err != nil {
		panic(err) // strings and lists alone
	}
	return string(text)
}

// byChance reports whether a text is digits that a time or an ID of a run may also contain.
func byChance(text string) bool { return len(text) < 12 && strings.Trim(text, "0123456789.-") == "" }
