package team_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// A variant says the words of a setting's sources. Each place of each source has a
// word of its own, its canary, by which it is known wherever it comes. Two
// variants differ in the words of the places that one of them changes, and in
// nothing else: not in how long anything is, and not in what is found in it.
//
// A source is named input/0, message/0, goal or task/0, a place in it by its
// path behind that.
type variant struct {
	changed func(place string) bool
	known   map[string]string // canary to place
}

func newVariant(changed func(place string) bool) *variant {
	return &variant{changed: changed, known: map[string]string{}}
}

var canaries = regexp.MustCompile(`zq[a-p]{10}`)

// letters is a word of n letters that stands for what it is made from.
func letters(n int, from ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(from, "\x00")))
	out := make([]byte, n)
	for i := range out {
		out[i] = 'a' + sum[i]&15
	}
	return string(out)
}

// personal data that sources have, in two forms of one length.
var (
	cards  = [2]string{"4111 1111 1111 1111", "5500 0055 5555 5559"}
	mails  = [2]string{"ada.one@example.org", "bob.two@example.org"}
	hosts  = [2]string{"192.0.2.17", "192.0.2.18"}
	tokens = [2]string{fakeToken, "ghp_" + strings.Repeat("Cd4fG7", 6)}
)

// words are what a place of a source says.
func (w *variant) words(place string) string {
	form := 0
	if w.changed(place) {
		form = 1
	}
	canary := "zq" + letters(10, place, "word", fmt.Sprint(form))
	w.known[canary] = place
	switch letters(1, place, "kind") {
	case "a", "b":
		return canary + " " + cards[form]
	case "c", "d":
		return canary + " " + mails[form]
	case "e", "f":
		return canary + " " + hosts[form]
	case "g":
		return canary + " " + tokens[form]
	}
	return canary
}

// value is a value of a form; words says what stands at its places.
func (f form) value(words func(place string) string, score int, kind, code string) any {
	note := func(place string) map[string]any { return map[string]any{"note": words(place)} }
	if f == list {
		second := note("/1/note")
		second["deep"] = map[string]any{"q": words("/1/deep/q")}
		return []any{note("/0/note"), second}
	}
	first, second := note("/gamma/0/note"), note("/gamma/1/note")
	first["id"], second["id"] = 101, 102
	return map[string]any{
		"alpha": words("/alpha"),
		"beta":  map[string]any{"x": words("/beta/x"), "inner": map[string]any{"p": words("/beta/inner/p"), "q": words("/beta/inner/q")}},
		"gamma": []any{first, second}, "score": score, "kind": kind, "code": code,
	}
}

func encoded(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// text is the text of a source that is no result.
func (w *variant) text(source string, f form) string {
	words := func(place string) string { return w.words(source + place) }
	switch f {
	case plain:
		return "Somebody said " + words("") + "."
	case fenced:
		return "```json\n" + encoded(f.value(words, 417, "red", "abcd")) + "\n```"
	}
	return encoded(f.value(words, 417, "red", "abcd"))
}

// echoes is every canary in a prompt, in the order in which they are met.
func echoes(p prompt.Prompt) string {
	var out []string
	met := map[string]bool{}
	for _, c := range canaries.FindAllString(p.System()+"\n"+p.Text(), -1) {
		if !met[c] {
			met[c], out = true, append(out, c)
		}
	}
	return strings.Join(out, " ")
}

// gist stands for every byte of a prompt.
func gist(p prompt.Prompt, what string) string { return letters(12, p.System(), p.Text(), what) }

var errOutOfOrder = errors.New("out of order")

// answer is the reply of a task's agent: a function of the prompt, which all
// of the prompt goes into, and of the words that are the source's own.
func (w *variant) answer(source string, f form, broken bool, p prompt.Prompt) (agent.Reply, error) {
	if strings.HasPrefix(p.Text(), "# Task: Retell ") {
		return agent.Reply{Text: "retold " + gist(p, "") + " " + echoes(p)}, nil
	}
	words := func(place string) string {
		out := gist(p, place) + " " + w.words(source+place)
		if len(place)%2 == 0 {
			out += " " + echoes(p)
		}
		return out
	}
	switch {
	case broken:
		return agent.Reply{}, fmt.Errorf("%w: %s", errOutOfOrder, words(""))
	case f == plain:
		return agent.Reply{Text: "I say " + words("")}, nil
	}
	salt := fmt.Sprint(w.changed(source + "/score"))
	score := 100 + 59*int(letters(1, gist(p, "score"), salt)[0]-'a')
	kind := [...]string{"red", "sky", "tan"}[letters(1, gist(p, "kind"), salt)[0]%3]
	text := encoded(f.value(words, score, kind, letters(4, gist(p, "code"), salt)))
	if len(source)%2 == 0 {
		text = "```json\n" + text + "\n```"
	}
	return agent.Reply{Text: text}, nil
}

// A sight is what a reader was given at one time.
type sight struct {
	agent, step  string // step is the task's title, or of the coordinator
	system, text string
	receipt      *prompt.Receipt
}

// A story is what came of a run.
type story struct {
	result *team.Result
	sights []sight
	told   string // the events, the result and its receipts, as the user reads them
	shown  string // the prompts of the record
}

// A stage is the team of a setting. One variant after another is played on it.
type stage struct {
	*setting
	team *team.Team
	now  *variant // what is played

	mu     sync.Mutex // guards what is noted
	sights []sight
	told   strings.Builder
	shown  strings.Builder
}

// build makes the team, or says why there is none.
func (s *setting) build() (*stage, error) {
	st := &stage{setting: s}
	places := map[task.ID]int{}
	for i := range s.tasks {
		places[task.NewID(s.tasks[i].Title)] = i
	}
	cfg := team.Config{Endpoints: s.endpoints, Policy: s.policy, Agents: slices.Clone(s.agents)}
	for a := range cfg.Agents {
		cfg.Agents[a].Agent = team.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			i := places[p.Receipt().Task]
			st.look(p, s.tasks[i].Title)
			return st.now.answer(fmt.Sprintf("task/%d", i), s.forms[a], s.broken[s.tasks[i].Title], p)
		})
	}
	if s.goal {
		cfg.Coordinator = &team.Coordinator{Accepts: &s.coordinator, MaxPromptBytes: s.most, Agent: team.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			st.look(p, answering)
			return agent.Reply{Text: "answered " + gist(p, "") + " " + echoes(p)}, nil
		})}
	}
	var err error
	st.team, err = team.New(cfg)
	return st, err
}

// answering is the step of the coordinator, as the flow table calls it.
const answering = "the answer"

// look notes a prompt.
func (st *stage) look(p prompt.Prompt, step string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	r := p.Receipt()
	st.sights = append(st.sights, sight{r.Agent, step, p.System(), p.Text(), r})
}

// heard notes an event without its time.
func (st *stage) heard(e event.Event) {
	e.Time, e.Duration = time.Time{}, 0
	if e.Handoff != nil {
		h := *e.Handoff
		h.Time, e.Handoff = time.Time{}, &h
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.told.WriteString(encoded(e) + "\n")
}

// Record notes what is recorded.
func (st *stage) Record(_ context.Context, r event.Record) error {
	if r.Prompt == nil {
		return nil
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, p := range slices.Concat(r.Prompt.System, r.Prompt.Text) {
		st.shown.WriteString(p.Words)
	}
	return nil
}

// options are those of a run of a variant.
func (st *stage) options(w *variant) *team.RunOptions {
	o := &team.RunOptions{RunID: "run", MaxConcurrency: 1, UserAccepts: &st.user, Recorder: st, Subscribers: []func(event.Event){st.heard}}
	for i, in := range st.inputs {
		o.Inputs = append(o.Inputs, team.Input{Name: in.name, Classification: in.level, Text: w.text(fmt.Sprintf("input/%d", i), in.form)})
	}
	for i, m := range st.messages {
		m.Text = w.text(fmt.Sprintf("message/%d", i), plain)
		o.Messages = append(o.Messages, m)
	}
	if st.goal {
		o.Answer = &team.Goal{Text: "Answer with " + w.words("goal") + ".", Classification: label.Internal}
	}
	return o
}

// play runs a variant. The error says why it cannot be run.
func (st *stage) play(ctx context.Context, w *variant) (*story, error) {
	st.now, st.sights = w, nil
	st.told.Reset()
	st.shown.Reset()
	res, err := st.team.RunTasks(ctx, st.tasks, st.options(w))
	if err != nil {
		return nil, err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return &story{result: res, sights: st.sights, told: st.told.String() + st.reads(res), shown: st.shown.String()}, nil
}

// reads is a result as the user reads it, without its times and the goal,
// which is the user's own.
func (s *setting) reads(res *team.Result) string {
	out := *res
	out.StartedAt, out.EndedAt, out.Goal = time.Time{}, time.Time{}, ""
	out.Tasks, out.Steps = append([]team.TaskResult(nil), res.Tasks...), append([]team.Step(nil), res.Steps...)
	var receipts strings.Builder
	for i := range out.Tasks {
		out.Tasks[i].Metrics.Start, out.Tasks[i].Metrics.End = time.Time{}, time.Time{}
		receipts.WriteString(encoded(out.Tasks[i].Receipts) + "\n")
	}
	for i := range out.Steps {
		out.Steps[i].Metrics.Start, out.Steps[i].Metrics.End = time.Time{}, time.Time{}
		receipts.WriteString(encoded(out.Steps[i].Receipt) + "\n")
	}
	return encoded(&out) + "\n" + receipts.String()
}
