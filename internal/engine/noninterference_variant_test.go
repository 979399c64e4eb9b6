package engine_test

import (
	"bytes"
	"cmp"
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
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A variant says the words of a setting's sources. Each place of each source has a
// word of its own, its canary, by which it is recognized everywhere. Two variants
// differ in the places that one of them changes: in the words and how many there
// are, in the personal data, secrets and control tokens among them, in whether
// optional members are there, in how long lists are, and, of a whole input, in
// whether it is JSON. All variants of a value are of one size class.
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

// letters is a word of n letters that is derived from its source.
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

// words are what a place of a source says. A place that is changed has another
// canary, other findings in another number, and more words.
func (w *variant) words(place string) string {
	form := 0
	if w.changed(place) {
		form = 1
	}
	canary := "zq" + letters(10, place, "word", fmt.Sprint(form))
	w.known[canary] = place
	text := canary + found(letters(1, place, "kind"), form)
	if form == 0 {
		return text
	}
	text += found(letters(1, place, "another kind"), form)
	if w.draws(place, "token", 4) {
		text += " <|im_start|>"
	}
	return text + strings.Repeat(" w", int(letters(1, place, "length")[0]-'a'))
}

// found is something that the gate finds, or nothing.
func found(kind string, form int) string {
	switch kind {
	case "a", "b":
		return " " + cards[form]
	case "c", "d":
		return " " + mails[form]
	case "e", "f":
		return " " + hosts[form]
	case "g":
		return " " + tokens[form]
	}
	return ""
}

// draws reports, of a changed place, whether something is otherwise in it: one
// time in so many.
func (w *variant) draws(place, what string, times byte) bool {
	return w.changed(place) && (letters(1, place, what)[0]-'a')%times == 0
}

// value is a value of a form; words says what stands at its places. Of a changed
// source, or a changed place in it, optional members are missing or more. A
// container may be left without any.
func (w *variant) value(source string, f form, words func(place string) string, score int, kind, code string) any {
	set := func(in map[string]any, name, place string) {
		if !w.draws(source+place, "missing", 3) {
			in[name] = words(place)
		}
	}
	items := func(path string, list []any) []any {
		switch {
		case w.draws(source+path, "fewer", 3):
			return list[:1]
		case w.draws(source+path, "more", 3):
			return append(list, map[string]any{"note": words(path + "/2/note"), "id": 103})
		}
		return list
	}
	if f == list {
		first, second, deep := map[string]any{"note": words("/0/note")}, map[string]any{}, map[string]any{}
		set(second, "note", "/1/note")
		set(deep, "q", "/1/deep/q")
		second["deep"] = deep
		return items("", []any{first, second})
	}
	first, second := map[string]any{"id": 101}, map[string]any{}
	set(first, "note", "/gamma/0/note")
	set(second, "note", "/gamma/1/note")
	beta, inner := map[string]any{}, map[string]any{}
	set(beta, "x", "/beta/x")
	set(inner, "p", "/beta/inner/p")
	set(inner, "q", "/beta/inner/q")
	if !w.draws(source+"/beta/inner", "missing", 3) {
		beta["inner"] = inner
	}
	if w.draws(source+"/beta", "more", 3) {
		beta["hiv"] = words("/beta/hiv")
	}
	return map[string]any{
		"alpha": words("/alpha"), "beta": beta, "gamma": items("/gamma", []any{first, second}), "score": score, "kind": kind, "code": code,
	}
}

func encoded(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// undated returns JSON without the times at which context was made.
func undated(text string) string { return creationTimes.ReplaceAllString(text, "") }

var creationTimes = regexp.MustCompile(`"createdAt":"[^"]*",?`)

// text is the text of a source that is no result.
func (w *variant) text(source string, f form) string {
	words := func(place string) string { return w.words(source + place) }
	if w.draws(source, "shape", 4) { // JSON in place of a text, or a text in place of JSON
		if f == plain {
			f = unclosed
		} else {
			f = plain
		}
	}
	text := "Somebody said " + words("") + "."
	if f != plain {
		text = encoded(w.value(source, f, words, 417, "red", "abcd"))
	}
	if f == fenced {
		text = "```json\n" + text + "\n```"
	}
	if bytesize.Class(len(text)) != bytesize.Class(1) {
		panic(fmt.Sprintf("a source of %d bytes is of another class than others", len(text)))
	}
	return text
}

// echoed is how many bytes the echoes of a reply have, whatever they are of.
const echoed = 1600

// echoes is every canary in a prompt, in the order in which they are met.
func echoes(p prompt.Prompt) string {
	return echoesOf(conversation(p))
}

// conversation is everything that an agent reads.
func conversation(p prompt.Prompt) string {
	var b strings.Builder
	b.WriteString(p.System())
	for _, m := range p.Messages() {
		b.WriteString("\n" + m.Text)
		for _, c := range m.Calls {
			b.WriteString("\n" + c.Name + c.Arguments)
		}
	}
	return b.String()
}

// echoesOf is every canary in a text.
func echoesOf(of string) string {
	var out []string
	met := map[string]bool{}
	for _, c := range canaries.FindAllString(of, -1) {
		if !met[c] {
			met[c], out = true, append(out, c)
		}
	}
	text := strings.Join(out, " ")
	return text[:min(len(text), echoed)] + strings.Repeat(".", max(echoed-len(text), 0))
}

// gist depends on every byte of a prompt.
func gist(p prompt.Prompt, what string) string { return letters(12, conversation(p), what) }

// retellHeading begins a prompt that asks for a translation.
const retellHeading = "# Task: Retell "

var errOutOfOrder = errors.New("out of order")

// answer is the reply of a task's agent: a function of the prompt, which all
// of the prompt goes into, and of the words that are the source's own. It takes
// tokens by the sizes of both.
func (w *variant) answer(s *setting, i int, f form, p prompt.Prompt) (agent.Reply, error) {
	source, broken := fmt.Sprintf("task/%d", i), s.broken[s.tasks[i].Title]
	held := isHolder(p)
	if w.childStep(&s.tasks[i], p) != "" && !held {
		return childReply(p), nil
	}
	r, calls := w.callTools(s, i, p)
	var err error
	switch {
	case held:
		_, f = s.member(s.tasks[i].Assignee)
		r, err = w.holderReply(s, i, f, p)
	case !calls:
		r, err = w.reply(source, f, broken, p)
	}
	r.Usage = llm.Usage{InputTokens: (len(p.System()) + len(p.Text())) / 3, OutputTokens: len(r.Text) / 3}
	r.Reasoning = "because " + gist(p, "reasoning") + " " + echoes(p)
	if !strings.HasPrefix(p.Text(), retellHeading) { // which can be less sensitive than the task
		r.Reasoning += " " + w.words(source)
	}
	r.Call = llm.CallInfo{Model: gist(p, "model"), RequestID: gist(p, "request"), FinishReason: gist(p, "finish")}
	r.Warnings = []string{"look at " + gist(p, "warning")}
	return r, err
}

func (w *variant) reply(source string, f form, broken bool, p prompt.Prompt) (agent.Reply, error) {
	if strings.HasPrefix(p.Text(), retellHeading) {
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
		return agent.Reply{Text: "half " + words("")}, fmt.Errorf("%w: %s", errOutOfOrder, words(""))
	case f == plain:
		return agent.Reply{Text: "I say " + words("")}, nil
	}
	salt := fmt.Sprint(w.changed(source + "/score"))
	score := 100 + 59*int(letters(1, gist(p, "score"), salt)[0]-'a')
	kind := [...]string{"red", "sky", "tan"}[letters(1, gist(p, "kind"), salt)[0]%3]
	text := encoded(w.value(source, f, words, score, kind, letters(4, gist(p, "code"), salt)))
	if len(source)%2 == 0 {
		text = "```json\n" + text + "\n```"
	}
	return agent.Reply{Text: text}, nil
}

// A sight is what a reader was given at one time.
type sight struct {
	agent, step  string // step is the task's title, or of the coordinator
	system, text string
	given        string // the text without what the agent itself said in earlier turns
	added        string // what the receipt accounts for, if that is not all of the text
	receipt      *prompt.Receipt
	written      string          // the receipt as JSON, once the run has ended
	policy       *handoff.Policy // of the run at that time
	call         *toolSight      // nil unless the reader is a tool
}

// A story is what came of a run.
type story struct {
	result *engine.Result
	sights []sight
	ruled  string // every verdict
	record string // the trace, and what a journal without a key has; empty where none is kept
	told   string // the events, the result and its receipts, as the user reads them
	shown  string // the prompts of the record
}

// A stage is the team of a setting. One variant after another is played on it.
type stage struct {
	*setting
	team *engine.Team // by the policy that runs begin with
	wide *engine.Team // by the policy that delivers most
	now  *variant     // what is played

	mu      sync.Mutex // guards what is noted
	sights  []sight    // of agents
	called  []sight    // of tools
	ruled   strings.Builder
	told    strings.Builder
	shown   []string          // of each prompt
	callers map[int]turnAgent // by task
	states  map[string]string // what tools keep

	kept   bool // a trace and a journal are kept too
	traced *trace.Writer

	monitor  *record.Monitor
	policy   *handoff.Policy // of the run, at this time
	replaced bool            // the policy was to be replaced
}

// build makes the team, or says why there is none.
func (s *setting) build() (*stage, error) {
	s.sources = s.listTools()
	st := &stage{setting: s}
	places := map[task.ID]int{}
	for i := range s.tasks {
		places[task.NewID(s.tasks[i].Title)] = i
	}
	cfg := engine.Config{Endpoints: s.endpoints, Policy: s.policy, Agents: slices.Clone(s.agents), Edges: s.edges()}
	for a := range cfg.Agents {
		if s.spawns[a] {
			cfg.Agents[a].Spawn = &plan.Spawning{Max: 6}
		}
	}
	tools := st.buildTools(places)
	for a := range cfg.Agents {
		for _, k := range s.toolsOf[a] {
			cfg.Agents[a].Tools = append(cfg.Agents[a].Tools, tools[k])
		}
		does := engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			i := places[p.Receipt().Task]
			st.look(p, cmp.Or(st.now.childStep(&s.tasks[i], p), s.tasks[i].Title))
			st.noteCaller(i, p)
			return st.now.answer(s, i, s.forms[a], p)
		})
		cfg.Agents[a].Agent = does
		if s.people[a] {
			cfg.Agents[a].Agent = st.asPerson(a, places)
		}
		if s.fallback[cfg.Agents[a].Name] != "" {
			cfg.Agents[a].Agent = chainAgent{does, s.leaves(&cfg.Agents[a])}
		}
	}
	if s.goal {
		cfg.Coordinator = &engine.Coordinator{Accepts: &s.coordinator, Limits: plan.Limits{MaxPromptBytes: s.most}, Agent: engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			st.look(p, answering)
			return agent.Reply{Text: "answered " + gist(p, "") + " " + echoes(p)}, nil
		})}
	}
	var err error
	if len(s.links) > 0 {
		if cfg.Edges, err = usable(cfg, s.tasks, st.options(newVariant(func(string) bool { return false }))); err != nil {
			return nil, err
		}
	}
	if st.wide, err = engine.New(cfg); err != nil {
		return nil, err
	}
	cfg.Policy = s.first()
	st.team, err = engine.New(cfg)
	return st, err
}

// messageEdges are those that the messages of agents need, and carry nothing above these messages.
func (s *setting) messageEdges() (list []handoff.Edge) {
	for i := range s.messages {
		m := &s.messages[i]
		for k := range s.agents {
			to := s.agents[k].Name
			if m.From == handoff.User || !reads(m, to) {
				continue
			}
			at := slices.IndexFunc(list, func(e handoff.Edge) bool { return e.From == m.From && e.To == to })
			if at < 0 {
				at, list = len(list), append(list, handoff.Edge{From: m.From, To: to, MaxClassification: new(m.Classification)})
			}
			*list[at].MaxClassification = max(m.Classification, list[at].Max())
		}
	}
	return list
}

// answering is the step of the coordinator, as the flow table calls it.
const answering = "the answer"

// look notes a prompt.
func (st *stage) look(p prompt.Prompt, step string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	r := p.Receipt()
	var given strings.Builder
	for _, m := range p.Messages() {
		if m.Role != "assistant" {
			given.WriteString(m.Text + "\n")
		}
	}
	st.sights = append(st.sights, sight{agent: r.Agent, step: step, system: p.System(), text: strings.TrimPrefix(conversation(p), p.System()+"\n"), given: given.String(), added: p.Added(), receipt: r, policy: st.policy})
}

// heard notes an event without its time and its place among the others.
func (st *stage) heard(e event.Event) {
	e.Time, e.Duration, e.Seq = time.Time{}, 0, 0
	if e.Handoff != nil {
		h := *e.Handoff
		h.Time, e.Handoff = time.Time{}, &h
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if e.Handoff != nil {
		fmt.Fprintln(&st.ruled, e.Handoff.Session, e.Handoff.Verdict, e.Handoff.Reason)
	}
	st.told.WriteString(undated(encoded(e)) + "\n")
}

// Record notes what is recorded.
func (st *stage) Record(ctx context.Context, r record.Prompt) error {
	if st.traced != nil {
		if err := st.traced.Record(ctx, r); err != nil {
			return err
		}
	}
	if r.Prompt == nil {
		return nil
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	var words strings.Builder
	for _, p := range slices.Concat(r.Prompt.System, r.Prompt.Text) {
		words.WriteString(p.Words)
	}
	st.shown = append(st.shown, words.String())
	return nil
}

// options are those of a run of a variant.
func (st *stage) options(w *variant) *engine.RunOptions {
	o := &engine.RunOptions{RunID: "run", MaxConcurrency: 1, UserAccepts: &st.user, Recorder: st.Record, Subscribers: []func(event.Event){st.heard}}
	for i, in := range st.inputs {
		o.Inputs = append(o.Inputs, engine.Input{Name: in.name, Classification: in.level, Text: w.text(fmt.Sprintf("input/%d", i), in.form)})
	}
	for i, m := range st.messages {
		m.Text = w.text(fmt.Sprintf("message/%d", i), plain)
		o.Messages = append(o.Messages, m)
	}
	if st.goal {
		o.Answer = &engine.Goal{Text: "Answer with " + w.words("goal") + ".", Classification: label.Internal}
	}
	return o
}

// play runs a variant. The error says why it cannot be run.
func (st *stage) play(ctx context.Context, w *variant) (*story, error) {
	st.now, st.sights, st.called, st.traced = w, nil, nil, nil
	st.callers, st.states = map[int]turnAgent{}, map[string]string{}
	st.monitor, st.policy, st.replaced = &record.Monitor{}, st.first(), false
	st.ruled.Reset()
	st.told.Reset()
	st.shown = nil
	o := st.options(w)
	o.Monitor, o.AllowWidening = st.monitor, true
	var k *keeper
	if st.kept {
		var err error
		if k, err = newKeeper(ctx, o); err != nil {
			return nil, err
		}
		defer k.journal.Close()
		st.traced = k.trace
	}
	res, err := st.team.RunTasks(ctx, st.tasks, o)
	if err != nil {
		return nil, err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.hasPeople() { // who are asked while others work
		slices.SortStableFunc(st.sights, func(a, b sight) int { return strings.Compare(a.receipt.Session, b.receipt.Session) })
	}
	st.writeReceipts()
	slices.SortFunc(st.called, func(a, b sight) int { return strings.Compare(a.call.id, b.call.id) }) // some run at once
	slices.Sort(st.shown)                                                                             // prompts that are prepared at once are recorded in any order, and so are their events
	out := &story{result: res, sights: append(st.sights, st.called...), ruled: sortedLines(st.ruled.String()), told: sortedLines(st.told.String()) + st.reads(res), shown: strings.Join(st.shown, "\n")}
	if k != nil {
		out.record, err = k.text(ctx, res)
	}
	return out, err
}

func (st *stage) writeReceipts() {
	for i := range st.sights {
		st.sights[i].written = encoded(st.sights[i].receipt)
	}
}

// A keeper keeps a trace and a journal of a run, as whoever may see no more than
// the caller of the run reads them.
type keeper struct {
	file    bytes.Buffer
	trace   *trace.Writer
	journal *journal.Journal
	run     *journal.Run
}

func newKeeper(ctx context.Context, o *engine.RunOptions) (*keeper, error) {
	k := &keeper{journal: journal.InMemory(journal.Options{})}
	k.trace = trace.NewWriter(&k.file, trace.Options{Run: o.RunID})
	var err error
	if k.run, err = k.journal.Begin(ctx, journal.Info{Run: o.RunID}); err != nil {
		return nil, err
	}
	o.Journal = journaltest.Opened(k.run)
	o.Subscribers = append(o.Subscribers, k.trace.Event)
	return k, nil
}

// withoutUnequal removes from JSON lines what differs between two equal runs: times, names of folders,
// and what is computed from them, also over the keys of prompts, which have keys of their own.
func withoutUnequal(text string) string {
	var out []string
	for words := strings.Split(text, `"`); len(words) > 0; words = words[1:] {
		word, drop := words[0], 0 // drop is how many words a member with an unequal value has
		switch word {
		case "durationMs", "startMs", "endMs", "seq":
			drop = 1
		case "beside", "folder":
			if len(words) > 3 && (isDigest(words[2]) || strings.HasPrefix(words[2], "runteam-")) {
				drop = 3
			}
		}
		switch {
		case drop > 0 && strings.HasPrefix(words[1], ":"):
			words = words[drop:]
			last := &out[len(out)-1]
			*last = strings.TrimSuffix(*last, ",") + strings.TrimLeft(words[0], ":0123456789")
		case isTime(word) || isDigest(word):
			out = append(out, "")
		default:
			out = append(out, word)
		}
	}
	return strings.Join(out, `"`)
}

func isTime(word string) bool {
	const form = "2006-01-02T"
	_, err := time.Parse(form, word[:min(len(word), len(form))])
	return err == nil
}

// isDigest reports whether a word is a SHA-256 in hexadecimal digits, perhaps with a number after a colon.
func isDigest(word string) bool {
	if len(word) < 64 || len(word) > 64 && word[64] != ':' {
		return false
	}
	return strings.Trim(word[:64], "0123456789abcdef") == "" && strings.Trim(word[64:], ":0123456789") == ""
}

// text is everything that was kept, without what is unequal in any two runs, and
// without the words of results and what budgets count, which a journal holds as they came.
func (k *keeper) text(ctx context.Context, res *engine.Result) (string, error) {
	if _, err := k.trace.Close(nil, time.Time{}); err != nil {
		return "", err
	}
	if _, err := k.run.Close(ctx); err != nil {
		return "", err
	}
	tr, err := k.journal.Trace(ctx, res.RunID)
	if err != nil {
		return "", err
	}
	stored, err := k.journal.Load(ctx, res.RunID)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString(k.file.String())
	for i := range tr.Prompts {
		text.WriteString("\n" + encoded(tr.Prompts[i]))
	}
	for i := range tr.Handoffs {
		text.WriteString("\n" + encoded(tr.Handoffs[i]))
	}
	tail, err := k.journal.Tail(ctx, res.RunID)
	for state := journal.TailReads; err == nil && state == journal.TailReads; {
		var events []event.Event
		events, state, err = tail.Next(ctx)
		for i := range events {
			text.WriteString("\n" + encoded(events[i]))
		}
	}
	if err != nil {
		return "", err
	}
	for i := range stored.History.Log {
		e := &stored.History.Log[i]
		for _, x := range []*record.AgentCall{e.Exchange, e.Turn, e.ToolResult} {
			if x != nil && x.Partial {
				x.Spent = record.Spent{Partial: true}
			}
		}
		if e.Asked != nil && e.Asked.Partial {
			e.Asked.Bytes = 0
		}
		text.WriteString("\n" + encoded([]any{e.Asked, e.Begun, e.Exchange, e.Turn, e.ToolCall, e.ToolResult}))
		if x := e.Exchange; x != nil && x.Result != nil {
			text.WriteString(encoded(x.Result.Classification))
		}
	}
	return sortedLines(withoutUnequal(text.String())), nil // the order of what is prepared at once depends on time
}

func sortedLines(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// reads is a result as the user reads it, without its times and the goal,
// which is the user's own.
func (s *setting) reads(res *engine.Result) string {
	out := *res
	out.StartedAt, out.EndedAt, out.Goal = time.Time{}, time.Time{}, ""
	out.Tasks, out.Steps = append([]engine.TaskResult(nil), res.Tasks...), append([]engine.Step(nil), res.Steps...)
	var receipts strings.Builder
	for i := range out.Tasks {
		m := &out.Tasks[i].Metrics
		m.Start, m.End, m.ToolCalls = time.Time{}, time.Time{}, slices.Clone(m.ToolCalls)
		for k := range m.ToolCalls {
			m.ToolCalls[k].Duration = 0
		}
		receipts.WriteString(encoded(out.Tasks[i].Receipts) + "\n")
	}
	for i := range out.Steps {
		out.Steps[i].Metrics.Start, out.Steps[i].Metrics.End = time.Time{}, time.Time{}
		receipts.WriteString(encoded(out.Steps[i].Receipt) + "\n")
	}
	return encoded(&out) + "\n" + undated(receipts.String())
}
