package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/stretchr/testify/require"
)

// levels are all labels.
var levels = []label.Classification{label.Public, label.Internal, label.Confidential, label.Secret}

// canary is a word that only context with a label has.
func canary(level label.Classification) string { return "canary-of-" + level.String() + "-7f3a" }

// viewedRun runs a team for a caller with a clearance, with words of each label in prompts, results,
// errors, rejected answers, reasoning, warnings, names and questions. The journal has a key.
func viewedRun(t *testing.T, dir string, accepts label.Classification) (key string) {
	t.Helper()
	key = strings.Repeat("ab", 32)
	parsed, err := journal.ParseKey([]byte(key))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".runteam"), 0o700))
	j, err := journal.Open(filepath.Join(dir, ".runteam", "runs.db"), journal.Options{Key: parsed})
	require.NoError(t, err)
	defer j.Close() //nolint:errcheck // it ends with the test
	o := &team.RunOptions{RunID: "viewed-" + accepts.String(), Journal: j, UserAccepts: new(accepts)}
	schema := []byte(`{"type":"object","properties":{"people":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false},"maxItems":2}},"required":["people"],"additionalProperties":false}`)
	echo := team.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		text := wordIn(p)
		r := agent.Reply{Text: "answer " + text, Reasoning: "thought of " + text, Turns: 1, Usage: llm.Usage{InputTokens: 12345, OutputTokens: 6789}, Warnings: []string{"warning " + text}, Call: llm.CallInfo{Model: "model " + text, RequestID: "request " + text}}
		switch title := p.Receipt().Agent; {
		case strings.Contains(p.Text(), "Fail "):
			return r, errors.New("failure " + text)
		case title == "lister":
			r.Text = fmt.Sprintf(`{"people":[{"name":%q}]}`, "name "+text)
		}
		return r, nil
	})
	never := person.New(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, person.ErrLater })
	var rules []handoff.PairRule // secret flows only by a rule for the exact pair
	for _, from := range []string{"user", "echo", "lister", "boss"} {
		for _, to := range []string{"user", "echo", "lister", "boss"} {
			if from != to || from == "echo" {
				rules = append(rules, handoff.PairRule{From: from, To: to, Mode: handoff.Full})
			}
		}
	}
	tm, err := team.New(team.Config{Name: "viewed", Policy: &handoff.Policy{Rules: rules}, Agents: []team.Member{
		{Name: "echo", Agent: echo, Accepts: label.Secret}, {Name: "lister", Agent: echo, Accepts: label.Secret}, {Name: "boss", Agent: never, Accepts: label.Secret},
	}})
	require.NoError(t, err)
	var tasks []task.Spec
	for _, level := range levels {
		name, word := "in-"+level.String(), level.String()
		o.Inputs = append(o.Inputs, team.Input{Name: name, Text: "words " + canary(level), Classification: level})
		uses := []task.Use{{Name: name}}
		tasks = append(tasks,
			task.Spec{Title: "Do " + word, Key: "do-" + word, Assignee: "echo", Description: "Do it.", Classification: level, Uses: uses},
			task.Spec{Title: "Fail " + word, Assignee: "echo", Description: "Fail it.", Classification: level, Uses: uses},
			task.Spec{Title: "After " + word, Assignee: "echo", Description: "Follow.", Classification: level, DependsOn: task.On("Fail " + word)},
			task.Spec{Title: "List " + word, Assignee: "lister", Description: "List them.", Classification: level, Uses: uses, OutputSchema: schema},
			task.Spec{Title: "Ask " + word, Assignee: "boss", Description: "May it be?", Classification: level, Uses: uses, OutputSchema: []byte(`{"enum":["yes","no"]}`)},
		)
		if level <= accepts { // the caller sees how many there are
			tasks = append(tasks, task.Spec{Title: "Mail " + word, Assignee: "echo", Description: "Write.", Classification: level, ForEach: &task.ForEach{Task: "List " + word, Path: "/people", MaxItems: 2, Key: "/name"}})
		}
	}
	res, err := tm.RunTasks(t.Context(), tasks, o)
	require.ErrorContains(t, err, "failure ")
	require.Equal(t, team.StatusSuspended, res.Status, "%v", res)
	return key
}

// wordIn returns the highest canary in a prompt.
func wordIn(p prompt.Prompt) (word string) {
	for _, level := range levels {
		if strings.Contains(p.Text(), canary(level)) {
			word = canary(level)
		}
	}
	return word
}

// walk reads every route of the API, and returns what each answered.
func walk(s *served, run string, tasks []string) map[string]string {
	s.t.Helper()
	all := map[string]string{}
	read := func(path string, headers ...string) {
		_, all[path] = s.do("GET", path, "", headers...)
	}
	for _, r := range inspector.Routes() {
		if r.Method != "GET" {
			continue
		}
		path := strings.NewReplacer("{run}", run, "{other}", run, "{from}", "echo", "{to}", "boss").Replace(strings.TrimPrefix(r.Path, inspector.API))
		if !strings.Contains(path, "{task}") {
			read(path)
		}
		for _, title := range tasks {
			switch {
			case strings.Contains(path, "{task}"):
				read(strings.Replace(path, "{task}", url.PathEscape(title), 1))
			case strings.HasSuffix(path, "/receipts"), strings.HasSuffix(path, "/handoffs"):
				read(path + "?task=" + url.QueryEscape(title))
			}
		}
	}
	for _, level := range levels {
		word := canary(level)
		read("/runs/" + run + "/receipts?contains=" + url.QueryEscape(word[:len(word)-2]))
	}
	_, all["the stream of events of "+run] = s.do("GET", "/runs/"+run+"/events", "", "Accept: text/event-stream")
	return all
}

// requireNoChange checks that no request changes a run that is not there for the viewer: each is answered as for a run
// that does not exist.
func requireNoChange(s *served, run string) {
	s.t.Helper()
	for _, r := range inspector.Routes() {
		path := strings.NewReplacer("{task}", "Do%20public", "{question}", "none").Replace(strings.TrimPrefix(r.Path, inspector.API))
		if r.Method == "GET" || !strings.Contains(path, "{run}") {
			continue
		}
		for _, body := range []string{"{}", `{"reason":"x"}`, `{"text":"x"}`, `{"agent":"echo","text":"x"}`, `{"policy":{}}`} {
			status, text := s.do(r.Method, strings.Replace(path, "{run}", run, 1), body, `If-Match: "x"`)
			unknownStatus, unknown := s.do(r.Method, strings.Replace(path, "{run}", "no-such-run", 1), body, `If-Match: "x"`)
			require.Equal(s.t, unknownStatus, status, "%s %s %s: %s", r.Method, path, body, text)
			require.Equal(s.t, unknown, text, "%s %s %s", r.Method, path, body)
			require.GreaterOrEqual(s.t, status, 400, "%s %s %s", r.Method, path, body)
		}
	}
}

// A viewer who is cleared for the label of a run sees it as its caller does, on every route. For other viewers, each route
// answers as it does for a run that does not exist.
//
// Requirement: G59.
func TestARunIsSeenWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	callers := []label.Classification{label.Internal, label.Confidential, label.Secret}
	dir, key := clitest.Folder(t, nil), ""
	for _, caller := range callers {
		key = viewedRun(t, dir, caller)
	}
	var titles []string
	for _, level := range levels {
		for _, what := range []string{"Do ", "Fail ", "After ", "List ", "Mail ", "Ask "} {
			if what == "Do " || level == label.Confidential || slowtest.Enabled() {
				titles = append(titles, what+level.String())
			}
		}
	}
	for _, accepts := range []label.Classification{label.Public, label.Internal, label.Confidential} {
		s := serveHere(t, call{dir: dir, args: []string{"--accepts", accepts.String()}, env: map[string]string{"RUNTEAM_JOURNAL_KEY": key}})
		unknown := walk(s, "no-such-run", titles)
		for _, caller := range callers {
			run := "viewed-" + caller.String()
			all := walk(s, run, titles)
			joined := strings.Builder{}
			for path, text := range all {
				if !strings.Contains(path, run) {
					continue // it is about all runs
				}
				joined.WriteString(text)
				for _, level := range levels {
					if level > min(accepts, caller) {
						require.NotContains(t, text, canary(level), "caller %v, viewer %v: %s", caller, accepts, path)
					}
				}
				if caller > accepts {
					require.Equal(t, unknown[strings.ReplaceAll(path, run, "no-such-run")], text, "caller %v, viewer %v: %s", caller, accepts, path)
				}
			}
			if caller > accepts {
				require.NotContains(t, joined.String()+all["/runs"]+all["/questions"], run)
				requireNoChange(s, run)
				continue
			}
			for _, level := range levels {
				for _, what := range []string{"words ", "answer ", "failure "} {
					require.Equal(t, level <= caller, strings.Contains(joined.String(), what+canary(level)), "caller %v, viewer %v: %s", caller, accepts, what+canary(level))
				}
			}
		}
		s.stop()
	}
}

// A viewer who may read a question can answer it without seeing the run, and learns nothing else of the run.
func TestAPersonAnswersAQuestionOfARunThatIsNotThere(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, nil)
	key := viewedRun(t, dir, label.Confidential)
	s := serveHere(t, call{dir: dir, args: []string{"--accepts", "internal"}, env: map[string]string{"RUNTEAM_JOURNAL_KEY": key}})
	var open []map[string]any
	require.NoError(t, json.Unmarshal([]byte(s.get("/questions")), &open))
	require.Len(t, open, 2, "what it may read")
	for _, q := range open {
		require.ElementsMatch(t, []string{"id", "label", "asks", "prompt", "schema"}, slices.Collect(maps.Keys(q)))
		for _, body := range []struct {
			answer string
			status int
		}{{`{"text":"no such choice"}`, 422}, {`{"text":"yes"}`, 200}, {`{"text":"yes"}`, 404}} {
			status, text := s.do("POST", "/questions/"+q["id"].(string)+"/answer", body.answer)
			require.Equal(t, body.status, status, "%s: %s", body.answer, text)
		}
	}
	all := call{dir: dir, args: []string{"questions", "-o", "json"}, env: map[string]string{"RUNTEAM_JOURNAL_KEY": key}}.run(t)
	require.NoError(t, json.Unmarshal([]byte(all.stdout), &open))
	require.Len(t, open, 2, "the others are open")
	for _, q := range open {
		status, text := s.do("POST", "/questions/"+q["id"].(string)+"/answer", `{"text":"yes"}`)
		require.Equal(t, 404, status, text)
	}
}

// The user who starts a run is its caller: what check refuses for the clearance of that user is not started, and a user
// who resumes the run later sees no more of it.
func TestTheUserWhoStartsARunIsItsCaller(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"guess.yaml": `
name: guess
model: m
agents: [{name: a, accepts: confidential, systemPrompt: You work.}]
inputs:
  guess: {classification: internal}
  diagnosis: {text: "canary-hiv", classification: confidential}
tasks:
  - {title: Look, assignee: a, uses: [diagnosis], description: Look., outputSchema: {type: object, properties: {ill: {type: boolean}}, required: [ill]}}
  - {title: Tell, assignee: a, dependsOn: [Look], description: Tell., when: {task: Look, path: /ill, equals: true}}
`, "open.yaml": `
name: open
model: m
agents: [{name: a, accepts: confidential, systemPrompt: You work.}, {name: b}]
inputs:
  note: {classification: internal}
  closed: {text: "canary-closed", classification: confidential}
tasks:
  - {title: Read, assignee: a, uses: [closed], description: Read.}
  - {title: Second, assignee: b, uses: [note], description: Wait.}
`})
	server := startCounting(t, "Second")
	s := serveHere(t, call{dir: dir, args: []string{"guess.yaml", "open.yaml", "--accepts", "internal"}, env: server.env()})
	status, text := s.do("POST", "/runs", `{"spec":"guess","inputs":{"guess":"canary"}}`)
	require.Equal(t, 422, status, text)
	require.Contains(t, text, "confidential")
	require.NotContains(t, s.get("/runs"), `"runId"`)

	status, text = s.do("POST", "/runs", `{"spec":"open","inputs":{"note":"canary-note"}}`)
	require.Equal(t, 202, status, text)
	run := object(t, text)["runId"].(string)
	<-server.blockedCalls
	require.Eventually(t, func() bool { return strings.Contains(s.get("/runs/"+run), "[withheld: confidential]") }, 20*time.Second, 20*time.Millisecond)
	require.NotContains(t, s.get("/runs/"+run), "canary-closed")
	s.stop()
	server.unblock()
	got := call{dir: dir, args: []string{"resume", run, "-o", "json"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.NotContains(t, got.stdout, "canary-closed", "the command line resumes it for its caller")
	require.Contains(t, got.stdout, "[withheld: confidential]")
	low := serveHere(t, call{dir: dir, args: []string{"--accepts", "internal"}})
	require.Contains(t, low.get("/runs/"+run), `"status":"ok"`)
}
