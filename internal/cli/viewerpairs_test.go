package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/serve"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A hiddenRun is what a run above a viewer does because of a value that the viewer may not see.
type hiddenRun struct {
	Exists  bool
	Words   int // of the value
	Items   int // of a list that an agent writes
	Tokens  int // that each call takes
	Seconds int // that each call takes
	Fails   bool
	Asks    bool // a person, of the clearance of the value
	Budget  int  // of the run; zero for none
}

// drawHiddenRun draws what a hidden run does.
func drawHiddenRun(name string) *rapid.Generator[hiddenRun] {
	return rapid.Custom(func(t *rapid.T) hiddenRun {
		return hiddenRun{
			Exists: rapid.IntRange(0, 9).Draw(t, name+" exists") > 0, Words: rapid.IntRange(1, 3000).Draw(t, name+" words"), Items: rapid.IntRange(0, 3).Draw(t, name+" items"),
			Tokens: rapid.IntRange(0, 5000).Draw(t, name+" tokens"), Seconds: rapid.IntRange(0, 5).Draw(t, name+" seconds"),
			Fails: rapid.Bool().Draw(t, name+" fails"), Asks: rapid.Bool().Draw(t, name+" asks"), Budget: rapid.SampledFrom([]int{0, 0, 4000}).Draw(t, name+" budget"),
		}
	})
}

// run runs a team with a value of a label, for a caller with that clearance.
func (h hiddenRun) run(t *testing.T, j *journal.Journal, id string, level label.Classification) {
	if !h.Exists {
		return
	}
	works := engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		time.Sleep(time.Duration(h.Seconds) * time.Second)
		r := agent.Reply{Text: "it is so", Usage: llm.Usage{InputTokens: h.Tokens, OutputTokens: h.Tokens}}
		switch {
		case strings.Contains(p.Text(), "List them."):
			r.Text = `{"items":[` + strings.TrimSuffix(strings.Repeat(`"one",`, h.Items), ",") + `]}`
		case h.Fails && strings.Contains(p.Text(), "Judge it."):
			return r, errors.New("it failed")
		}
		return r, nil
	})
	never := person.New(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, person.ErrLater })
	policy := &handoff.Policy{} // secret flows only by a rule for the exact pair
	for _, pair := range [][2]string{{"user", "worker"}, {"user", "boss"}, {"worker", "worker"}, {"worker", "user"}, {"boss", "user"}} {
		policy.Rules = append(policy.Rules, handoff.PairRule{From: pair[0], To: pair[1], Mode: handoff.Full})
	}
	tm, err := engine.New(engine.Config{Name: "hidden", Policy: policy, Agents: []engine.Member{{Name: "worker", Agent: works, Accepts: level}, {Name: "boss", Agent: never, Accepts: level}}})
	require.NoError(t, err)
	uses := []task.Use{{Name: "value"}}
	tasks := []task.Spec{
		{Title: "List", Classification: level, Assignee: "worker", Description: "List them.", Uses: uses, OutputSchema: []byte(`{"type":"object","properties":{"items":{"type":"array","items":{"type":"string"},"maxItems":3}},"required":["items"]}`)},
		{Title: "Each", Classification: level, Assignee: "worker", Description: "Work.", ForEach: &task.ForEach{Task: "List", Path: "/items", MaxItems: 3}},
		{Title: "Judge", Classification: level, Assignee: "worker", Description: "Judge it.", Uses: uses},
	}
	if id == "run-open" {
		tasks = nil // the order of its events must not vary
	}
	if h.Asks {
		tasks = append(tasks, task.Spec{Title: "Ask", Classification: level, Assignee: "boss", Description: "May it be?", Uses: uses})
	}
	_, err = tm.RunTasks(t.Context(), tasks, &engine.RunOptions{
		RunID: id, Journal: j, UserAccepts: &level, MaxConcurrency: 1, Budget: plan.Budget{MaxTokenBudget: h.Budget},
		Inputs: []engine.Input{{Name: "value", Text: strings.Repeat("word ", h.Words), Classification: level}},
	})
	require.NoError(t, err)
}

// keyedDigest finds digests under the key of a journal, and what begins with one.
var keyedDigest = regexp.MustCompile("[0-9a-f]{64}|--question [0-9a-f]{8}")

// queriesOf returns the queries of a route.
func queriesOf(r inspector.Route) []string {
	switch {
	case r.Method != http.MethodGet:
		return []string{""}
	case strings.HasSuffix(r.Path, "/runs"):
		return []string{"", "?limit=1", "?before=run-hidden"}
	case strings.HasSuffix(r.Path, "/receipts"):
		return []string{"", "?contains=word"}
	case strings.HasSuffix(r.Path, "/handoffs"):
		return []string{"?task=Judge"}
	}
	return []string{""}
}

// answersTo returns what each route answers to a viewer, about each run and for each method.
func answersTo(t *testing.T, j *journal.Journal, accepts label.Classification) map[string]string {
	con, _, _ := clitest.Console(t)
	o := serve.Options(con, j, &journals.Flags{}, accepts)
	o.Access = inspector.Access{Tokens: inspector.OneToken(serveToken, ""), Hosts: inspector.Hosts{Names: []string{"127.0.0.1"}, Port: "80"}}
	h := inspector.New(o)
	all := map[string]string{}
	for _, r := range inspector.Routes() {
		for _, run := range []string{"run-hidden", "run-"} { // the second is a beginning of both IDs
			if heavy := strings.HasSuffix(r.Path, "/export") || strings.Contains(r.Path, "/compare/") || strings.HasSuffix(r.Path, "/graph"); run == "run-" && (heavy || !strings.Contains(r.Path, "{run}")) {
				continue
			}
			path := strings.NewReplacer("{run}", run, "{other}", "run-hidden", "{task}", "Judge", "{from}", "worker", "{to}", "boss", "{question}", "none").Replace(r.Path)
			for _, query := range queriesOf(r) {
				q := httptest.NewRequest(r.Method, path+query, strings.NewReader(`{"reason":"x"}`))
				q.Host = "127.0.0.1"
				q.Header.Set("Authorization", "Bearer "+serveToken)
				q.Header.Set("Content-Type", "application/json")
				q.Header.Set("If-Match", `"x"`)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, q)
				all[r.Method+" "+path+query] = keyedDigest.ReplaceAllString(fmt.Sprint(w.Code, w.Header(), w.Body), "digest")
			}
		}
	}
	return all
}

// Two runs above a viewer that differ in a value, in its length, in the members of a list, in failures, in time, tokens
// and budgets, and a journal without the run, give the viewer equal bytes on every route.
//
// Requirement: G59.
func TestPairsOfRunsAboveAViewerGiveEqualBytes(t *testing.T) {
	pairs := 6
	if slowtest.Enabled() {
		pairs = slowtest.Cases(30, 100)
	}
	if many, err := strconv.Atoi(os.Getenv("PAIRS")); err == nil {
		pairs = many
	}
	draw := rapid.Custom(func(t *rapid.T) [2]hiddenRun {
		return [2]hiddenRun{drawHiddenRun("one").Draw(t, "one"), drawHiddenRun("other").Draw(t, "other")}
	})
	warm := journal.InMemory(journal.Options{}) // what the process keeps must not belong to a bubble
	hiddenRun{Exists: true, Words: 1}.run(t, warm, "run-warm", label.Internal)
	answersTo(t, warm, label.Internal)
	require.NoError(t, warm.Close())
	for i := range pairs {
		pair := draw.Example(i)
		level := levels[1+i%3]
		accepts := levels[i/3%(1+i%3)]
		var answers [2]map[string]string
		for k, of := range pair {
			synctest.Test(t, func(t *testing.T) {
				j := journal.InMemory(journal.Options{})
				defer j.Close() //nolint:errcheck // in memory
				end := time.Now().Add(time.Hour)
				hiddenRun{Exists: true, Words: 1, Items: 1, Asks: true}.run(t, j, "run-open", accepts)
				of.run(t, j, "run-hidden", level)
				time.Sleep(time.Until(end))
				answers[k] = answersTo(t, j, accepts)
			})
		}
		for _, path := range slices.Sorted(maps.Keys(answers[0])) {
			require.Equal(t, answers[0][path], answers[1][path], "viewer %v, run %v: %s: %+v", accepts, level, path, pair)
		}
	}
}
