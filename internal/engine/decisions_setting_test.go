package engine_test

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A decisionSetting is a spec in which what one secret input says decides which tasks run, how often
// and for what, and nothing else of the secret need reach them. Beside these tasks there are others
// that may learn nothing of it.
//
// It is drawn such that the check accepts it: either everyone who sees a decision is cleared for it,
// or it is declassified, and then they are cleared for no more than that.
type decisionSetting struct {
	level   label.Classification // of the secret
	lowered bool                 // the compared values are declassified
	bus     bool                 // agents send messages
	goal    bool                 // a coordinator writes the answer
	specs   []task.Spec
	kinds   map[string]string // by the title of a task as written: what decides about it
}

// Names of the members of a [decisionSetting]. The outsiders are cleared for nothing but internal
// context.
var (
	insiders  = []string{"ada", "bob", "cid"} // perform what is decided about
	outsiders = []string{"eve", "fay"}
)

const (
	apart     = "gil" // cleared as the insiders are, and performs nothing that is decided about
	headings  = "hal" // as gil, and delivered headings and statuses only
	toolUser  = "cid" // has tools
	reviewing = "ann" // a person, cleared as the insiders are
	approving = "lou" // a person, cleared as the outsiders are
)

// decisionSchema is that of results that decide. The note and the IDs are words.
const decisionSchema = `{"type":"object","additionalProperties":false,"required":["kind","ok","score","list","note"],"properties":{` +
	`"kind":{"enum":["red","sky","tan"]},"ok":{"type":"boolean"},"score":{"type":"integer","minimum":0,"maximum":9},"note":{"type":"string"},` +
	`"list":{"type":"array","maxItems":4,"items":{"type":"object","additionalProperties":false,"required":["id","q"],"properties":{"id":{"type":"string"},"q":{"enum":["a","b"]}}}}}}`

// decisionPaths are the values that are declassified if decisions are.
var decisionPaths = []task.Path{"/kind", "/ok", "/score", "/list/*/q"}

// A drawnTask is a task, a loop or a list that other tasks may depend on.
type drawnTask struct {
	title   string
	decides bool     // its result has what conditions compare, and a list
	each    bool     // it runs for each item
	open    bool     // it reads nothing that is secret or decided by that
	oneOf   []string // in place of the title, tasks of which one runs
}

// A decisionDrawing draws a [decisionSetting].
type decisionDrawing struct {
	t     *rapid.T
	s     *decisionSetting
	n     int // of titles
	scope []drawnTask
	used  map[string]bool // values that a condition compares
	depth int

	settled bool // no people and no tools, so that rounds can be compared
}

func drawDecisions(t *rapid.T) *decisionSetting {
	d := &decisionDrawing{t: t, used: map[string]bool{}, s: &decisionSetting{kinds: map[string]string{}}}
	s := d.s
	s.level = []label.Classification{label.Confidential, label.Confidential, label.Secret}[rapid.IntRange(0, 2).Draw(t, "level")]
	s.lowered, s.bus, s.goal = d.chance(25, "lowered"), d.chance(20, "bus"), d.chance(25, "goal")
	s.specs = append(s.specs, d.outside(), d.decider())
	for range rapid.IntRange(3, 6).Draw(t, "tasks") {
		switch k := rapid.IntRange(0, 9).Draw(t, "task"); {
		case k < 2:
			s.specs = append(s.specs, d.outside())
		case k < 3:
			s.specs = append(s.specs, d.decider())
		default:
			s.specs = append(s.specs, d.construct()...)
		}
	}
	if !s.lowered {
		s.specs = append(s.specs, d.after([]string{"ada", "bob", headings}), d.after([]string{"ada", "bob", headings}), d.after([]string{apart}))
	}
	s.specs = append(s.specs, d.recall()...)
	return s
}

func (d *decisionDrawing) chance(percent int, what string) bool {
	return rapid.IntRange(0, 99).Draw(d.t, what) < percent
}

func (d *decisionDrawing) title(kind string) string {
	d.n++
	return fmt.Sprintf("%s %d", kind, d.n)
}

func oneDrawn[T any](d *decisionDrawing, from []T, what string) T {
	return from[rapid.IntRange(0, len(from)-1).Draw(d.t, what)]
}

// insider returns who performs a task that a decision is about.
func (d *decisionDrawing) insider() string {
	switch {
	case d.s.lowered:
		return oneDrawn(d, outsiders, "agent")
	case d.settled:
		return oneDrawn(d, insiders[:2], "agent")
	case !d.s.bus && d.chance(10, "person"):
		return reviewing
	}
	return oneDrawn(d, insiders, "agent")
}

// outside is a task that reads nothing secret. Its agent may be cleared for it all the same.
func (d *decisionDrawing) outside() task.Spec {
	s := task.Spec{Title: d.title("Outside"), Description: "Do your part.", Assignee: oneDrawn(d, outsiders, "agent"), Uses: []task.Use{{Name: "open"}}}
	if !d.s.bus && d.chance(50, "cleared") { // else it could get messages that are secret
		s.Assignee = oneDrawn(d, []string{apart, apart, headings, toolUser}, "agent")
	}
	self := drawnTask{title: s.Title, open: true, decides: d.chance(30, "decides")}
	if self.decides {
		s.OutputSchema = []byte(decisionSchema)
	}
	for _, from := range d.scope {
		switch {
		case from.open && from.oneOf == nil && d.chance(40, "depends"):
			s.DependsOn = append(s.DependsOn, task.Ref{Task: from.title})
		case strings.HasPrefix(from.title, "Decide") && s.Assignee != apart && s.Assignee != toolUser && d.chance(30, "knows of it"): // and gets nothing of it
			s.DependsOn = append(s.DependsOn, task.Ref{Task: from.title, Optional: true})
		}
	}
	if s.Assignee == toolUser {
		s.Tools = openTools
		if d.s.lowered { // people answer at any time
			s.Tools = openTools[:1]
		}
	}
	d.scope = append(d.scope, self)
	return s
}

// Tools that may read nothing secret, and one that may.
var openTools, secretTools = []string{"probe", "pay"}, []string{"notebook"}

// decider is a task that reads the secret, and whose result decides.
func (d *decisionDrawing) decider() task.Spec {
	s := task.Spec{Title: d.title("Decide"), Description: "Decide.", Assignee: oneDrawn(d, []string{"ada", "bob", "ada", "bob", apart}, "agent"), Uses: []task.Use{{Name: "case"}}, OutputSchema: []byte(decisionSchema)}
	d.scope = append(d.scope, drawnTask{title: s.Title, decides: true})
	return s
}

// construct is a branch, a loop, a list or a task with judges.
func (d *decisionDrawing) construct() []task.Spec {
	switch k := rapid.IntRange(0, 9).Draw(d.t, "construct"); {
	case k < 3:
		return d.branch()
	case k < 6 && d.depth < 2:
		return []task.Spec{d.loop()}
	case k < 8 && d.depth < 2:
		return d.list()
	case d.depth < 2:
		return []task.Spec{d.judged()}
	}
	return []task.Spec{d.part()}
}

// part is a task that a decision may be about. Little that it reads is secret by itself.
func (d *decisionDrawing) part() task.Spec {
	s := task.Spec{Title: d.title("Part"), Description: "Do your part.", Assignee: d.insider(), DependsOn: d.refs(30, d.chance(60, "open"))}
	self := drawnTask{title: s.Title, decides: d.chance(40, "decides")}
	switch {
	case self.decides:
		s.OutputSchema = []byte(decisionSchema)
	case !d.s.lowered && d.chance(15, "computed"):
		s.Assignee, s.Description, s.Template, s.DependsOn = "", "", "It was done.", nil
	}
	if !d.s.lowered && s.Template == "" && d.chance(15, "secret") {
		s.Uses = []task.Use{{Name: "case"}}
	}
	if s.Assignee == toolUser {
		s.Tools = secretTools
	}
	d.scope = append(d.scope, self)
	return s
}

// refs are dependencies on some of what may be depended on, or of that which is open.
func (d *decisionDrawing) refs(percent int, open bool) (refs []task.Ref) {
	if !open && d.chance(40, "one") { // and nothing else that is secret
		last := d.scope[len(d.scope)-1]
		if last.each {
			return []task.Ref{{Each: last.title, Optional: true}}
		}
		if !last.open && last.oneOf == nil && (!d.s.lowered || !strings.HasPrefix(last.title, "Decide")) {
			return []task.Ref{{Task: last.title, Optional: true}}
		}
	}
	for _, from := range d.scope {
		if !d.chance(percent, "depends") || open && !from.open {
			continue
		}
		ref := task.Ref{Task: from.title, Optional: d.chance(50, "optional")}
		switch {
		case from.each:
			ref = task.Ref{Each: from.title, Optional: ref.Optional}
		case from.oneOf != nil:
			ref = task.Ref{OneOf: from.oneOf, Optional: ref.Optional}
		case d.s.lowered && strings.HasPrefix(from.title, "Decide"):
			ref.Need, ref.As = []task.Path{oneDrawn(d, decisionPaths[:3], "need")}, task.Structured
		}
		refs = append(refs, ref)
	}
	return refs
}

// condition is one on a value that no other condition compares; nil if there is none.
func (d *decisionDrawing) condition() *task.Condition {
	for _, from := range slices.Backward(d.scope) {
		if !from.decides || from.each || !d.chance(80, "when") {
			continue
		}
		for _, path := range decisionPaths[:3] {
			if key := from.title + string(path); !d.used[key] {
				d.used[key] = true
				return d.comparison(from.title, path)
			}
		}
	}
	return nil
}

func (d *decisionDrawing) comparison(title string, path task.Path) *task.Condition {
	c := task.Equals(title, path, true)
	switch path {
	case "/kind":
		c = oneDrawn(d, []*task.Condition{task.Equals(title, path, "red"), task.In(title, path, "red", "sky")}, "condition")
	case "/score":
		c = oneDrawn(d, []*task.Condition{task.AtLeast(title, path, 4), task.Any(task.AtMost(title, path, 2), task.AtLeast(title, path, 8))}, "condition")
	}
	if d.chance(20, "not") {
		c = task.Not(c)
	}
	return c
}

// branch is something that runs in one case, and perhaps a task for the other one.
func (d *decisionDrawing) branch() []task.Spec {
	when := d.condition()
	if when == nil {
		return []task.Spec{d.part()}
	}
	before := len(d.scope)
	var specs []task.Spec
	if d.depth < 2 && d.chance(30, "a loop") {
		specs = []task.Spec{d.loop()}
	} else {
		specs = []task.Spec{d.part()}
	}
	specs[0].When = when
	d.s.kinds[specs[0].Title] = "branch"
	if d.chance(40, "else") {
		other := slices.Clone(d.scope)
		d.scope = d.scope[:before] // the cases do not depend on each other
		last := d.part()
		last.When = task.Not(when)
		d.s.kinds[last.Title] = "branch"
		one := drawnTask{oneOf: []string{specs[0].Title, last.Title}}
		if specs, d.scope = append(specs, last), append(other, d.scope[before:]...); d.chance(60, "one of them") {
			d.scope = append(other[:before], one)
		}
	}
	return specs
}

// inside draws what a loop or a list has, and calls end with what is visible in it. Outside of it,
// only self is visible.
func (d *decisionDrawing) inside(kind string, most int, end func(specs []task.Spec, visible []drawnTask) []task.Spec) []task.Spec {
	outer := len(d.scope)
	d.depth++
	var specs []task.Spec
	for range rapid.IntRange(1, most).Draw(d.t, kind) {
		specs = append(specs, d.construct()...)
	}
	specs = end(specs, d.scope[outer:])
	d.depth--
	d.scope = d.scope[:outer]
	for i := range specs {
		if d.s.kinds[specs[i].Title] == "" {
			d.s.kinds[specs[i].Title] = kind
		}
	}
	return specs
}

// outputs are the tasks whose result a loop or a list may have.
func outputs(visible []drawnTask) (titles []string) {
	for _, v := range visible {
		if !v.each && v.oneOf == nil {
			titles = append(titles, v.title)
		}
	}
	return titles
}

// loop draws tasks, and one that says whether they are done.
func (d *decisionDrawing) loop() task.Spec {
	s := task.Spec{Title: d.title("Loop")}
	s.Repeat = &task.Repeat{MaxRounds: rapid.IntRange(2, 4-d.depth).Draw(d.t, "rounds"), OnLimit: oneDrawn(d, []string{"", "fail"}, "limit"), OnRepeat: oneDrawn(d, []string{"", "continue"}, "repeat")}
	outer := d.settled
	if d.settled = outer || d.chance(50, "settled"); d.settled {
		s.Repeat.MaxRounds, s.Repeat.OnRepeat = 4-d.depth, ""
	}
	s.Repeat.Tasks = d.inside("loop", 2, func(specs []task.Spec, visible []drawnTask) []task.Spec {
		check := task.Spec{Title: d.title("Check"), Description: "Check it.", Assignee: d.insider(), OutputSchema: []byte(decisionSchema), DependsOn: d.refs(30, d.chance(50, "open"))}
		if !d.s.lowered && d.chance(70, "secret") {
			check.Uses = []task.Use{{Name: "case"}}
		}
		if check.Assignee == toolUser {
			check.Tools = secretTools
		}
		previous := task.Ref{Task: check.Title, Round: task.Previous, Optional: true, Need: []task.Path{oneDrawn(d, []task.Path{"/ok", "/kind", "/note"}, "feedback")}, As: task.Structured}
		if !d.s.lowered && d.settled && d.chance(40, "muse") { // only whether rounds repeat each other is secret
			check.Uses, check.DependsOn = nil, nil
			muse := task.Spec{Title: d.title("Muse"), Description: "Muse.", Assignee: d.insider(), Uses: []task.Use{{Name: "case"}}, OutputSchema: []byte(decisionSchema)}
			muse.DependsOn = []task.Ref{{Task: muse.Title, Round: task.Previous, Optional: true, Need: []task.Path{"/ok"}, As: task.Structured}}
			s.Repeat.Output, s.Repeat.Until = check.Title, task.Not(task.AtLeast(check.Title, "/score", 0))
			return []task.Spec{muse, check}
		}
		reader := &check
		if at := slices.IndexFunc(specs, func(s task.Spec) bool { return s.Assignee != "" && s.Verify == nil }); at >= 0 && d.chance(50, "another reader") {
			reader = &specs[at]
		}
		reader.DependsOn = append(reader.DependsOn, previous)
		s.Repeat.Output, s.Repeat.Until = oneDrawn(d, append(outputs(visible), check.Title), "output"), d.comparison(check.Title, oneDrawn(d, decisionPaths[:3], "until"))
		return append(specs, check)
	})
	d.settled, d.scope = outer, append(d.scope, drawnTask{title: s.Title})
	return s
}

// list draws tasks for each item of a list, or one.
func (d *decisionDrawing) list() []task.Spec {
	f := &task.ForEach{As: fmt.Sprintf("item%d", d.n), MaxItems: rapid.IntRange(1, 3-d.depth).Draw(d.t, "items"), OnOverflow: oneDrawn(d, []string{"", "first"}, "overflow")}
	for _, from := range slices.Backward(d.scope) {
		if from.decides && !from.each && d.chance(50, "list") {
			f.Task, f.Path = from.title, "/list"
			break
		}
	}
	if f.Task == "" {
		f.Input, f.OnOverflow = "leads", "first"
	}
	if d.chance(40, "key") {
		f.Key = "/id"
	}
	if d.chance(50, "single") {
		s := d.part()
		if s.Template != "" {
			return []task.Spec{s}
		}
		d.scope[len(d.scope)-1] = drawnTask{title: s.Title, each: true}
		d.s.kinds[s.Title], s.ForEach = "list", f
		s.DependsOn = slices.DeleteFunc(s.DependsOn, func(ref task.Ref) bool { return ref.Task == f.Task }) // it has the item
		return []task.Spec{s}
	}
	s := task.Spec{Title: d.title("Items"), ForEach: f}
	f.Tasks = d.inside("list", 2, func(specs []task.Spec, visible []drawnTask) []task.Spec {
		titles := outputs(visible)
		if len(titles) == 0 {
			last := d.part()
			specs, titles = append(specs, last), []string{last.Title}
		}
		f.Output = oneDrawn(d, titles, "output")
		return specs
	})
	d.scope = append(d.scope, drawnTask{title: s.Title, each: true})
	return []task.Spec{s}
}

// judged is a task with judges, some of which have read the secret.
func (d *decisionDrawing) judged() task.Spec {
	s := d.part()
	if s.Template != "" {
		return s
	}
	d.scope[len(d.scope)-1].decides = false // its rounds have
	d.s.kinds[s.Title] = "judges"
	v := &task.Verify{MaxRounds: rapid.IntRange(1, 3).Draw(d.t, "rounds"), OnDissent: oneDrawn(d, []string{"", "reject", "keep"}, "dissent")}
	if v.OnDissent != "" {
		v.MaxRounds = 0
	}
	for range rapid.IntRange(1, 3).Draw(d.t, "judges") {
		j := task.Judge{Agent: d.insider(), Tools: []string{}}
		if !d.s.lowered && d.chance(60, "secret") {
			j.Uses = []task.Use{{Name: "case"}}
		}
		v.Judges = append(v.Judges, j)
	}
	v.Quorum = rapid.IntRange(1, len(v.Judges)).Draw(d.t, "quorum")
	s.Verify = v
	return s
}

// after is a task of one of some agents that depends on much of what was decided.
func (d *decisionDrawing) after(agents []string) task.Spec {
	s := task.Spec{Title: d.title("After"), Description: "Sum it up.", Assignee: oneDrawn(d, agents, "agent"), DependsOn: d.refs(50, false)}
	if s.Assignee == apart { // whose results are in the memory that is recalled, at whatever time they come
		s.Uses = []task.Use{{Name: "case"}}
	}
	d.scope = append(d.scope, drawnTask{title: s.Title})
	return s
}

// recall is a task of an outsider that reads the shared memory once all tasks outside have ended, and
// most others.
func (d *decisionDrawing) recall() []task.Spec {
	wait := task.Spec{Title: d.title("Wait"), Description: "Wait.", Assignee: outsiders[0], Priority: task.Low}
	for _, from := range d.scope {
		if from.open {
			wait.DependsOn = append(wait.DependsOn, task.Ref{Task: from.title})
		}
	}
	return []task.Spec{wait, {Title: d.title("Recall"), Description: "Remember.", Assignee: outsiders[1], Priority: task.Low, MemoryScope: task.ScopeAll, DependsOn: task.On(wait.Title)}}
}

// policy is the policy of a setting: exact rules for what is secret, and what declassifies decisions.
func (s *decisionSetting) policy() *handoff.Policy {
	p := &handoff.Policy{}
	if s.level == label.Secret {
		all := append([]string{handoff.User, reviewing, "computed", apart, gate.ToolReader(secretTools[0])}, insiders...)
		for _, from := range all {
			for _, to := range append(all, handoff.Coordinator) {
				if from != handoff.User || to != handoff.User && to != handoff.Coordinator {
					p.Rules = append(p.Rules, handoff.PairRule{From: from, To: to, Mode: handoff.Full})
				}
			}
		}
	}
	if !s.lowered { // when a first round ends, which no decision is about, depends on decisions
		for _, from := range append([]string{reviewing, headings, "computed"}, insiders...) {
			p.Rules = append(p.Rules, handoff.PairRule{From: from, To: outsiders[1], Mode: handoff.Minimal})
		}
		return p
	}
	for _, from := range append([]string{apart}, insiders...) {
		for _, to := range append([]string{"computed"}, outsiders...) {
			if to == "computed" { // which is cleared for everything
				p.Rules = slices.DeleteFunc(p.Rules, func(r handoff.PairRule) bool { return r.From == from && r.To == to })
				p.Rules = append(p.Rules, handoff.PairRule{From: from, To: to, Mode: handoff.Full, Ceiling: new(label.Internal)})
			}
			p.Declassify = append(p.Declassify, handoff.Declassifier{Entry: handoff.Entry{Name: from + " " + to, From: from, To: to, Reason: "a test"}, LowerTo: label.Internal, Paths: decisionPaths})
		}
	}
	return p
}

// accepts returns what a member of the team is cleared for.
func (s *decisionSetting) accepts(name string) label.Classification {
	if slices.Contains(outsiders, name) || name == approving || slices.Contains(openTools, strings.TrimPrefix(name, gate.ToolReader(""))) || s.lowered && (name == handoff.User || name == handoff.Coordinator) {
		return label.Internal
	}
	return s.level
}

// inputs are the inputs of a run in which the secret says word.
func (s *decisionSetting) inputs(word string) []engine.Input {
	leads, list := label.Internal, []any{}
	for i := range 2 {
		list = append(list, map[string]any{"id": fmt.Sprint("lead ", i), "q": "a"})
	}
	if !s.lowered { // else its number of items would be known to all
		leads, list = s.level, list[:int(letters(1, word)[0]-'a')%3]
	}
	return []engine.Input{
		{Name: "case", Classification: s.level, Text: fmt.Sprintf("The case is %s.", word)},
		{Name: "open", Classification: label.Internal, Text: "Anyone may know this."},
		{Name: "leads", Classification: leads, Text: encoded(list)},
	}
}
