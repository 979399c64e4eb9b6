package engine_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/gate"

	"pgregory.net/rapid"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// A setting is a spec with its policy, and everything that a run of it is given
// but the words of its sources, which a [variant] says.
type setting struct {
	agents    []engine.Member // without what does the work
	forms     []form          // of each agent's results
	endpoints map[string]label.Classification
	fallback  map[string]string // by the name of an agent: the endpoint that follows its own
	inputs    []settingInput
	messages  []engine.Message // without texts
	tasks     []task.Spec
	broken    map[string]bool // tasks whose agent ends with an error
	tools     []settingTool
	toolsOf   [][]int // of each agent
	sources   []toolSource
	calls     [][][]int // of tools, by task and turn
	policy    *handoff.Policy
	network
	settingPeople

	goal        bool
	coordinator label.Classification
	most        int // bytes of its prompts
	user        label.Classification
}

type settingInput struct {
	name  string
	level label.Classification
	form  form
}

// A form is the shape of a text or a result. Each has its places: the paths of
// its leaves that hold words.
type form int

const (
	plain    form = iota // words
	closed               // an object that the schema closes
	unclosed             // an object of which the schema says nothing
	list                 // an array of objects
	fenced               // of inputs: an object in a code fence
)

// places are where the words of a form stand; a plain text has one.
func (f form) places() []string {
	switch f {
	case plain:
		return []string{""}
	case list:
		return []string{"/0/note", "/1/note", "/1/deep/q"}
	}
	return []string{"/alpha", "/beta/x", "/beta/inner/p", "/beta/inner/q", "/gamma/0/note", "/gamma/1/note"}
}

// schema is the JSON Schema of results of this form; empty for plain words.
func (f form) schema() string {
	switch f {
	case closed:
		return `{"type":"object","additionalProperties":false,"required":["alpha","beta","gamma","score","kind","code"],"properties":{
"alpha":{"type":"string"},
"beta":{"type":"object","properties":{"x":{"type":"string"},"inner":{"type":"object","properties":{"p":{"type":"string"},"q":{"type":"string"}}}}},
"gamma":{"type":"array","items":{"type":"object","properties":{"note":{"type":"string"},"id":{"type":"integer"}}}},
"score":{"type":"integer","minimum":100,"maximum":999},"kind":{"enum":["red","sky","tan"]},"code":{"type":"string","pattern":"^[a-p]{4}$","maxLength":4}}}`
	case unclosed:
		return `{"type":"object"}`
	case list:
		return `{"type":"array","items":{"type":"object"}}`
	}
	return ""
}

// allows and blocks are what rules say of values of a form.
func (f form) allows() []task.Path {
	switch f {
	case plain:
		return []task.Path{""}
	case list:
		return []task.Path{"", "/*/note", "/*/deep/**", "/**"}
	}
	return []task.Path{"/alpha", "/beta/**", "/beta/x", "/beta/inner/*", "/gamma/**", "/gamma/*/note", "/score", "/kind", "/code", "/*", ""}
}

func (f form) blocks() []task.Path {
	if f == list {
		return []task.Path{"deep", "/**/q", "/*/note", "Q"}
	}
	return []task.Path{"inner", "/beta/inner", "/**/note", "q", "ALPHA", "/gamma/0", "/beta/x", "alpha"}
}

// bounded are the places that the closed schema bounds.
var bounded = []task.Path{"/score", "/kind", "/code"}

var classes = []label.Classification{label.Public, label.Internal, label.Confidential, label.Secret}

// A drawing draws a setting so that most of them can be run: it keeps the label
// of each task as the check beforehand will have it.
type drawing struct {
	t        *rapid.T
	s        *setting
	labels   []label.Classification // of tasks, at most
	deciding map[int]bool           // tasks that a condition reads
	compared map[[2]string]bool     // pairs that such a value crosses
	branches []label.Classification // of tasks: of what decides whether they run
	between  map[[2]string]bool     // pairs that something crosses
	exact    map[[2]string]bool     // pairs that something secret crosses
	lowered  map[[2]string]bool
	needed   map[[2]string][]task.Path // what tasks need of a pair
}

func (d *drawing) chance(percent int, what string) bool {
	return rapid.IntRange(0, 99).Draw(d.t, what) < percent
}

func (d *drawing) number(least, most int, what string) int {
	return rapid.IntRange(least, most).Draw(d.t, what)
}

func pickOne[T any](d *drawing, from []T, what string) T {
	return from[rapid.IntRange(0, len(from)-1).Draw(d.t, what)]
}

func some[T any](d *drawing, from []T, most int, what string) []T {
	var out []T
	for range rapid.IntRange(1, most).Draw(d.t, what) {
		out = append(out, pickOne(d, from, what))
	}
	return out
}

func drawSetting(t *rapid.T) *setting {
	d := &drawing{t: t, deciding: map[int]bool{}, compared: map[[2]string]bool{}, s: &setting{broken: map[string]bool{}}, between: map[[2]string]bool{}, exact: map[[2]string]bool{}, lowered: map[[2]string]bool{}, needed: map[[2]string][]task.Path{}}
	d.readers()
	d.tools()
	d.sources()
	d.s.policy = &handoff.Policy{}
	for i := range rapid.IntRange(2, 8).Draw(t, "tasks") {
		d.task(i)
	}
	d.rules()
	d.network()
	d.toolEntries()
	d.drawPeople()
	return d.s
}

func (d *drawing) readers() {
	s := d.s
	const vault, annex = "https://vault.example/v1", "https://annex.example/v1"
	s.endpoints, s.fallback = map[string]label.Classification{}, map[string]string{}
	for i := range rapid.IntRange(2, 6).Draw(d.t, "agents") {
		m := engine.Member{Name: fmt.Sprintf("agent%d", i), SystemPrompt: "You are an agent.", Accepts: pickOne(d, []label.Classification{label.Internal, label.Internal, label.Confidential, label.Confidential, label.Secret}, "accepts")}
		if d.chance(15, "endpoint") {
			m.Endpoint = vault
			s.endpoints[vault] = label.Confidential
			if d.chance(40, "fallback") {
				s.fallback[m.Name] = annex
				s.endpoints[annex] = label.Internal
			}
		}
		if d.chance(10, "handoff") {
			m.Handoff = handoff.Minimal
		}
		if d.chance(8, "produces") {
			m.Produces = new(label.Internal)
		}
		f := pickOne(d, []form{plain, plain, closed, closed, closed, unclosed, list}, "form")
		if f != plain && d.chance(70, "schema") {
			m.OutputSchema = []byte(f.schema())
		}
		s.agents, s.forms = append(s.agents, m), append(s.forms, f)
	}
	s.user = pickOne(d, classes[1:], "user")
	s.goal, s.coordinator = d.chance(35, "goal"), pickOne(d, classes[1:], "coordinator")
	if d.chance(20, "parts") {
		s.most = 4 << 10
	}
}

func (d *drawing) sources() {
	s := d.s
	for i := range rapid.IntRange(1, 4).Draw(d.t, "inputs") {
		s.inputs = append(s.inputs, settingInput{fmt.Sprintf("input%d", i), pickOne(d, classes, "level"), pickOne(d, []form{plain, unclosed, unclosed, fenced, list}, "form")})
	}
	if !d.chance(30, "messages") {
		return
	}
	for range rapid.IntRange(1, 2).Draw(d.t, "messages") {
		from, to := d.agent(), d.agent()
		m := engine.Message{From: from, To: to, Classification: pickOne(d, classes[:3], "level")}
		if from == to {
			m.From = handoff.User
		}
		if d.chance(20, "everyone") {
			m.To = handoff.Anyone
		}
		for i := range s.agents {
			if a := &s.agents[i]; reads(&m, a.Name) && !d.chance(5, "above") {
				m.Classification = min(m.Classification, s.clearance(a))
			}
		}
		s.messages = append(s.messages, m)
	}
}

func (d *drawing) agent() string { return pickOne(d, d.s.agents, "agent").Name }

func reads(m *engine.Message, agent string) bool {
	return m.To == agent || m.To == handoff.Anyone && m.From != agent
}

// clearance is what an agent may read and write.
func (s *setting) clearance(m *engine.Member) label.Classification {
	level := m.Accepts
	for _, where := range s.leaves(m) {
		level = min(level, s.endpoints[where])
	}
	return level
}

// leaves are the endpoints that may read the prompts of an agent.
func (s *setting) leaves(m *engine.Member) (all []string) {
	if m.Endpoint != "" {
		all = append(all, m.Endpoint)
	}
	if next := s.fallback[m.Name]; next != "" {
		all = append(all, next)
	}
	return all
}

func (s *setting) member(name string) (*engine.Member, form) {
	i := slices.IndexFunc(s.agents, func(m engine.Member) bool { return m.Name == name })
	if i < 0 {
		return nil, plain
	}
	return &s.agents[i], s.forms[i]
}

func (d *drawing) task(i int) {
	s := d.s
	at := rapid.IntRange(0, len(s.agents)-1).Draw(d.t, "assignee")
	m, f := &s.agents[at], s.forms[at]
	tk := task.Spec{Title: fmt.Sprintf("Task %d", i), Description: "Do your part.", Assignee: m.Name, Classification: label.Internal}
	if m.OutputSchema == nil && f != plain {
		tk.OutputSchema = []byte(f.schema())
	}
	tk.Tools = d.ownTools(at)
	level := label.Internal.Join(s.toolLevel(at, &tk))
	most := s.clearance(m)
	if m.Produces != nil {
		most = min(most, *m.Produces)
	}
	for k := range s.inputs {
		in := &s.inputs[k]
		if !d.chance(40, "uses") {
			continue
		}
		arrives, ok := d.admit(in.level, most, handoff.User, m.Name, in.form, false)
		if !ok {
			continue
		}
		u := task.Use{Name: in.name}
		if in.form != plain && d.chance(30, "need") {
			u.Need = d.need(handoff.User, m.Name, in.form)
		}
		if d.chance(10, "reveal") {
			u.Reveal = map[string][]task.Path{"email": {pickOne(d, in.form.allows(), "reveal")}}
		}
		tk.Uses, level = append(tk.Uses, u), level.Join(arrives)
	}
	branch := label.Public
	for up := range i {
		if !d.chance(45, "depends") {
			continue
		}
		from, shape := s.member(s.tasks[up].Assignee)
		if d.branches[up] > most {
			continue
		}
		ref := task.Ref{Task: s.tasks[up].Title, Optional: d.chance(20, "optional")}
		arrives, ok := d.admit(d.labels[up], most, from.Name, m.Name, shape, ref.Optional)
		if !ok {
			continue
		}
		if shape != plain {
			if d.chance(25, "need") {
				ref.Need = d.need(from.Name, m.Name, shape)
			}
			ref.As = pickOne(d, []task.Payload{task.Output, task.Structured, task.Both}, "as")
		}
		tk.DependsOn, level = append(tk.DependsOn, ref), level.Join(arrives).Join(d.branches[up])
		branch = branch.Join(d.branches[up])
	}
	branch = branch.Join(d.when(i, &tk, m, most))
	level = level.Join(branch)
	for k := range s.messages {
		if msg := &s.messages[k]; reads(msg, m.Name) && msg.Classification <= most {
			level = level.Join(msg.Classification)
		}
	}
	if d.chance(8, "memory") {
		tk.MemoryScope, level = task.ScopeAll, level.Join(min(most, label.Confidential))
	}
	if tk.When == nil && d.chance(4, "broken") {
		s.broken[tk.Title] = true
	}
	s.calls = append(s.calls, d.calls(at, &tk, level))
	s.tasks, d.labels, d.branches = append(s.tasks, tk), append(d.labels, level), append(d.branches, branch)
}

// when draws a condition on the choice of an earlier task, and returns the label of what it reads.
// Who sees the status of tasks may read it.
func (d *drawing) when(i int, tk *task.Spec, m *engine.Member, most label.Classification) label.Classification {
	s := d.s
	if most = min(most, s.user); s.goal {
		most = min(most, s.coordinator)
	}
	for up := range i {
		from, shape := s.member(s.tasks[up].Assignee)
		if shape != closed || m.Handoff == handoff.Minimal || d.deciding[up] || d.branches[up] > most || !d.chance(70, "when") {
			continue
		}
		arrives, ok := d.admit(d.labels[up], most, from.Name, m.Name, shape, false)
		if !ok {
			continue
		}
		title, pair := s.tasks[up].Title, [2]string{from.Name, m.Name}
		tk.When = pickOne(d, []*task.Condition{
			task.In(title, "/kind", "red", "sky"), task.Not(task.Equals(title, "/kind", "sky")), task.AtLeast(title, "/score", 400),
			task.Equals(title, "/kind", "red"), task.Any(task.AtMost(title, "/score", 400), task.Equals(title, "/kind", "tan")),
		}, "condition")
		tk.When.Leaves(func(l *task.Condition) { d.needed[pair] = append(d.needed[pair], task.Path(l.Path)) })
		d.deciding[up], d.compared[pair] = true, true
		return arrives.Join(d.branches[up])
	}
	return label.Public
}

// need draws what a task needs of something.
func (d *drawing) need(from, to string, f form) []task.Path {
	paths, pair := some(d, f.allows(), 3, "need"), [2]string{from, to}
	d.needed[pair] = append(d.needed[pair], paths...)
	return paths
}

// admit says with which label something of a level crosses a pair, and makes
// it cross where it would not; false means that it is left out.
func (d *drawing) admit(level, most label.Classification, from, to string, f form, optional bool) (label.Classification, bool) {
	pair := [2]string{from, to}
	if level > most {
		often := 40
		if strings.HasPrefix(to, gate.ToolReader("")) {
			often = 80
		}
		switch {
		case d.lowered[pair]:
		case d.chance(often, "declassify") && f != plain && most >= label.Internal:
			e := handoff.Declassifier{Entry: handoff.Entry{Name: strings.ReplaceAll("lower "+from+" "+to, ":", " "), From: from, To: to, Reason: "a test"}, LowerTo: label.Internal, Paths: some(d, bounded, 2, "bounded")}
			if f != closed {
				e.UnsafeText, e.Paths = true, some(d, f.allows(), 2, "unsafe")
			} else if d.chance(30, "unsafe") {
				e.UnsafeText, e.Paths = true, append(e.Paths, some(d, f.allows(), 2, "unsafe")...)
			}
			d.s.policy.Declassify = append(d.s.policy.Declassify, e)
			d.lowered[pair] = true
		case optional:
			return label.Public, true
		default:
			return 0, false
		}
		level = label.Internal
	}
	d.between[pair] = true
	if level == label.Secret {
		d.exact[pair] = true
	}
	return level, true
}

// rules draws the policy: for pairs that something crosses, for what goes to
// the user and the coordinator, and for everybody.
func (d *drawing) rules() {
	s, p := d.s, d.s.policy
	if d.chance(10, "default") {
		p.Default = pickOne(d, []handoff.Mode{handoff.Full, handoff.Minimal}, "default")
	}
	for _, pair := range sortedPairs(d.between) {
		if d.exact[pair] || d.compared[pair] || d.chance(50, "rule") {
			d.rule(pair)
		}
	}
	for i := range s.agents {
		for _, reader := range [...]string{handoff.User, handoff.Coordinator} {
			if d.chance(35, "outside") {
				d.outside(s.agents[i].Name, reader, s.forms[i])
			}
		}
	}
	if d.chance(20, "wildcard") {
		r := handoff.PairRule{From: handoff.Anyone, To: d.agent()}
		if d.chance(50, "side") {
			r.From, r.To = d.agent(), handoff.Anyone
		}
		d.wildcard(&r)
		p.Rules = append(p.Rules, r)
	}
	if d.chance(15, "everybody") {
		r := handoff.PairRule{From: handoff.Anyone, To: handoff.Anyone, Redact: handoff.Redaction{Kinds: []redact.Kind{redact.IP}}}
		p.Rules = append(p.Rules, r)
	}
}

func (d *drawing) wildcard(r *handoff.PairRule) {
	switch rapid.IntRange(0, 3).Draw(d.t, "wildcard") {
	case 0:
		r.Mode = handoff.Minimal
	case 1:
		r.Ceiling = new(pickOne(d, classes[1:3], "ceiling"))
	case 2:
		r.Redact.Kinds = []redact.Kind{redact.IP}
	case 3:
		r.Block = some(d, closed.blocks(), 2, "block")
	}
}

func sortedPairs(of map[[2]string]bool) [][2]string {
	var out [][2]string
	for pair := range of {
		out = append(out, pair)
	}
	slices.SortFunc(out, func(a, b [2]string) int { return strings.Compare(a[0]+"\x00"+a[1], b[0]+"\x00"+b[1]) })
	return out
}

// rule draws the rule for one pair of a producer and an agent.
func (d *drawing) rule(pair [2]string) {
	_, f := d.s.member(pair[0])
	structured := f != plain
	if pair[0] == handoff.User {
		structured, f = !slices.ContainsFunc(d.s.inputs, func(in settingInput) bool { return in.form == plain }), unclosed
	}
	if of, isTool := d.ruledForm(pair); isTool {
		structured, f = true, of
	}
	r := handoff.PairRule{From: pair[0], To: pair[1], Mode: handoff.Full}
	switch k := rapid.IntRange(0, 9).Draw(d.t, "mode"); {
	case k < 4 && structured:
		r.Mode, r.Allow = handoff.Scoped, some(d, f.allows(), 5, "allow")
		if d.compared[pair] || d.chance(80, "needed") {
			r.Allow = append(r.Allow, d.needed[pair]...)
		}
	case k == 4 && !d.exact[pair] && len(d.needed[pair]) == 0:
		r.Mode = handoff.Minimal
	}
	if structured && r.Mode != handoff.Minimal && d.chance(40, "blocks") {
		r.Block = some(d, f.blocks(), 2, "block")
	}
	if d.chance(15, "ceiling") {
		r.Ceiling = new(pickOne(d, classes[1:], "ceiling"))
	}
	if d.chance(15, "redact") {
		r.Redact.Kinds = []redact.Kind{redact.IP}
	}
	if d.chance(15, "reveal") {
		r.Reveal = map[redact.Kind][]task.Path{redact.Email: {pickOne(d, f.allows(), "reveal")}}
	}
	if r.Mode != handoff.Minimal && !d.compared[pair] && d.chance(25, "translate") {
		r.Translate = d.translation(f, structured, pair)
	}
	d.s.policy.Rules = append(d.s.policy.Rules, r)
}

func (d *drawing) translation(f form, structured bool, pair [2]string) *handoff.Translation {
	tr := &handoff.Translation{}
	switch k := rapid.IntRange(0, 6).Draw(d.t, "translate"); {
	case k < 2 && structured:
		tr.Fields = some(d, f.allows(), 3, "fields")
	case k == 2 && structured:
		tr.Filter = some(d, f.blocks(), 2, "filter")
	case k == 3:
		tr.MaxTokens = rapid.IntRange(20, 80).Draw(d.t, "tokens")
	case k == 4:
		tr.MaxTokens, tr.ByModel = 200, true
	case k == 5:
		tr.Recast = gate.RecastSystem
		if d.chance(70, "endorsed") {
			d.s.policy.Endorse = append(d.s.policy.Endorse, handoff.Endorser{Entry: handoff.Entry{Name: strings.ReplaceAll("endorse "+pair[0]+" "+pair[1], ":", " "), From: pair[0], To: pair[1], Reason: "a test"}})
		}
	default:
		tr.Recast = gate.RecastUser
	}
	return tr
}

// outside draws the rule for what the user or the coordinator gets of an agent.
func (d *drawing) outside(from, to string, f form) {
	r := handoff.PairRule{From: from, To: to, Mode: handoff.Minimal}
	switch k := rapid.IntRange(0, 4).Draw(d.t, "outside"); {
	case k == 0 && f != plain:
		r.Mode, r.Allow = handoff.Scoped, some(d, f.allows(), 3, "allow")
	case k == 1 && f != plain:
		r.Mode, r.Block = handoff.Full, some(d, f.blocks(), 2, "block")
	case k == 2:
		r.Mode, r.Ceiling = handoff.Full, new(pickOne(d, classes[1:], "ceiling"))
	}
	d.s.policy.Rules = append(d.s.policy.Rules, r)
}
