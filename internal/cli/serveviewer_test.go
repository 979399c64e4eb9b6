package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/clitest"
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

// viewedRun runs a team whose caller may see everything, with words of each label in prompts, results,
// errors, rejected answers, reasoning, warnings, names and questions. The journal has a key.
func viewedRun(t *testing.T, dir string, accepts label.Classification) (key string) {
	t.Helper()
	key = strings.Repeat("ab", 32)
	parsed, err := journal.ParseKey([]byte(key))
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".runteam"), 0o700))
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
	lines := s.follow(s.t.Context(), "/runs/"+run+"/events")
	var events strings.Builder
	for lines.Scan() {
		events.WriteString(lines.Text() + "\n")
	}
	all["the stream of events"] = events.String()
	return all
}

// A viewer gets no word above its clearance from any route, and gets those that it may see. What is
// secret reaches nobody, although the caller of the run may see it.
func TestNoRouteHasWhatItsViewerMayNotSee(t *testing.T) {
	t.Parallel()
	for _, caller := range []label.Classification{label.Confidential, label.Secret} {
		dir := clitest.Folder(t, nil)
		key := viewedRun(t, dir, caller)
		run := "viewed-" + caller.String()
		for _, accepts := range []label.Classification{label.Public, label.Internal, label.Confidential} {
			if caller == label.Confidential && accepts != label.Internal && !slowtest.Enabled() {
				continue
			}
			var titles []string
			for _, level := range levels {
				titles = append(titles, "Do "+level.String())
				if level != accepts+1 && level != label.Secret && !slowtest.Enabled() {
					continue // all tasks of the lowest label that is withheld, and of what reaches nobody
				}
				for _, what := range []string{"Fail ", "After ", "List ", "Mail ", "Ask "} {
					titles = append(titles, what+level.String())
				}
				titles = append(titles, "Mail "+level.String()+"[1]")
			}
			s := serveHere(t, call{dir: dir, args: []string{"--accepts", accepts.String()}, env: map[string]string{"RUNTEAM_JOURNAL_KEY": key}})
			all := walk(s, run, titles)
			joined := strings.Builder{}
			for path, text := range all {
				joined.WriteString(text)
				for _, level := range levels {
					if level > accepts {
						require.NotContains(t, text, canary(level), "caller %v, viewer %v: %s", caller, accepts, path)
					}
				}
				require.Contains(t, text, "{", "%s", path)
			}
			for _, level := range levels {
				if level <= accepts {
					for _, what := range []string{"words ", "answer ", "failure "} {
						if accepts == label.Public && what == "failure " {
							continue // without a label of its own, a text is at least internal
						}
						require.Contains(t, joined.String(), what+canary(level), "caller %v, viewer %v", caller, accepts)
					}
				}
			}
			if caller > accepts { // sizes of what is withheld are classes
				require.NotContains(t, all["/runs/"+run+"/tasks/Do%20secret"], "12345")
				require.Contains(t, all["/runs/"+run+"/tasks/Do%20secret"], `"rounded":true`)
			}
			s.stop()
		}
	}
}

// Nobody answers a question that is withheld from the viewer.
func TestAQuestionThatIsWithheldIsNotAnswered(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, nil)
	key := viewedRun(t, dir, label.Secret)
	s := serveHere(t, call{dir: dir, args: []string{"--accepts", "internal"}, env: map[string]string{"RUNTEAM_JOURNAL_KEY": key}})
	for title, status := range map[string]int{"Ask secret": 403, "Ask confidential": 403, "Ask internal": 200} {
		_, rest, found := strings.Cut(s.get("/questions"), `"title":"`+title+`"`)
		require.True(t, found, title)
		before, _, _ := strings.Cut(s.get("/questions"), rest)
		id := before[strings.LastIndex(before, `"id":"`)+len(`"id":"`):]
		id, _, _ = strings.Cut(id, `"`)
		got, text := s.do("POST", "/runs/viewed-secret/questions/"+id+"/answer", `{"text":"yes"}`)
		require.Equal(t, status, got, "%s: %s", title, text)
		if status == 200 {
			require.JSONEq(t, `{"taken":false}`, text)
			got, text = s.do("POST", "/runs/viewed-secret/questions/"+id+"/answer", `{"text":"no"}`)
			require.Equal(t, 409, got, text)
		}
	}
	got, text := s.do("POST", "/runs/viewed-secret/questions/none/answer", `{"text":"yes"}`)
	require.Equal(t, 404, got, text)
}
