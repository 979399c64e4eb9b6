package task

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/provenance"
)

// A Verify lets judges accept or refute the result of a task before other tasks get it. It is
// written out as a loop: in each round, the task, a task for each judge, and one that counts.
//
// A judge gets the title and the description of the task and its result, and what its [Judge]
// grants. It says whether it accepts the result, and why not. A judge that fails does not accept.
type Verify struct {
	Judges []Judge // required; an agent that is named twice is asked twice

	// Mode says how they judge. "refute", the default, asks each of them to find what is wrong.
	// "lens" asks each of them about one aspect, such as correctness or completeness.
	Mode string

	Quorum    int // how many must accept; zero means half of them, rounded up
	MaxRounds int // of "revise", from 1 to 100; zero means 2

	// OnDissent says what happens if fewer accept. "revise", the default, runs the task again with
	// its result and the objections, and fails it with ANSWER_REJECTED after the last round. "reject"
	// fails it at once, and "keep" keeps the result.
	OnDissent string
}

// A Judge is an agent that judges the result of a task, and what it is granted beside that.
type Judge struct {
	Agent     string
	Lens      string // in mode "lens", the aspect that it judges; the next of the usual ones unless set
	Uses      []Use
	DependsOn []Ref
	Tools     []string // that it may call, as in a [Spec]
}

// The ways to judge, and what a lack of a quorum means.
const (
	refute = "refute"
	lens   = "lens"
	revise = "revise"
	reject = "reject"
	keep   = "keep"
)

// Headings of what the rounds read of each other.
const (
	proposedTitle   = "Proposed answer"
	previousTitle   = "Previous answer"
	objectionsTitle = "Objections of the judges"
)

// What judges are asked to do, and an agent whose result they did not accept. Each is followed by
// a lens, or by the task.
const (
	refuteText = "Judge the proposed answer to the task below. Be a skeptic: try to refute it. Look for what is wrong, missing or not supported by what you are given. Accept it only if you find nothing that matters.\n\n" + replyText
	lensText   = "Judge the proposed answer to the task below by one aspect only: %s. Other judges look at the rest. Accept it if you find nothing that matters.\n\n" + replyText
	replyText  = "Reply with accept, and with a critique: what must change and why, or an empty text if you accept.\n\nThe task was %q.\n\n"
	reviseText = "\n\nJudges did not accept your previous answer. Revise it: follow the objections that are right, keep what is good, and reply with the whole answer."
)

// lenses are the aspects of judges that name none, in turn.
var lenses = []string{
	"correctness (is every statement true, and does it follow from what is given?)",
	"completeness (does it do all that the task asks for?)",
	"edge cases (what happens in unusual, extreme or missing cases?)",
	"consistency (does it contradict itself or what is given?)",
	"clarity (can its reader understand and use it as it is?)",
}

// judgeSchema is the schema of what a judge says.
const judgeSchema = `{"type":"object","properties":{"accept":{"type":"boolean"},"critique":{"type":"string"}},"required":["accept","critique"],"additionalProperties":false}`

// verdictSchema is the schema of the count.
const verdictSchema = `{"type":"object","properties":{"accepted":{"type":"boolean"},"accepts":{"type":"integer","minimum":0,"maximum":%d},` +
	`"dissent":{"type":"array","items":{"type":"object","properties":{"judge":{"type":"string"},"critique":{"type":"string"}},"required":["judge","critique"],"additionalProperties":false}}},` +
	`"required":["accepted","accepts","dissent"],"additionalProperties":false}`

// addJudged adds a task that spec i is written out as, with its judges if it has some.
func (u *unroller) addJudged(s Spec, at Place, specs []Spec, i int, in *scope) {
	if s.Verify == nil || specs[i].Title == "" { // which is reported
		u.add(s, at)
		return
	}
	u.verify(s, at, specs, i, in)
}

// A verification is a task with judges that is being written out.
type verification struct {
	*Verify
	answer Spec    // the task, in the scope that it is written in
	base   string  // its title without the round
	title  string  // as written
	key    string  // as written
	deps   [][]Ref // of the task and of each judge, what is written in dependsOn
	places []Place // parallel to deps
}

// verify writes out the rounds of a task that has judges: of spec i, as it is written out without
// them.
func (u *unroller) verify(s Spec, at Place, specs []Spec, i int, in *scope) {
	v := verification{Verify: s.Verify, answer: s, base: strings.TrimSuffix(s.Title, in.suffix), title: specs[i].Title, key: specs[i].Key, deps: [][]Ref{s.DependsOn}, places: []Place{at}}
	round := scope{pointers: []string{at.Pointer + "/verify"}, guardAt: at.Pointer + "/verify"}
	for k := range v.Judges {
		judge, place := u.judge(specs, i, k, in)
		v.deps, v.places = append(v.deps, judge.DependsOn), append(v.places, place)
		round.pointers = append(round.pointers, place.Pointer)
	}
	round.pointers = append(round.pointers, at.Pointer+"/verify/verdict")
	start, loop := len(u.out), v.loop()
	u.rounds(&loop, s.When, in, at.Pointer, round, 0)
	for k := start; k < len(u.out); k++ {
		v.complete(&u.out[k], &u.places[k], slices.Index(round.pointers, u.out[k].Instance.Pointer))
	}
}

// judge returns what judge k of spec i depends on, and where that is written.
func (u *unroller) judge(specs []Spec, i, k int, in *scope) (Spec, Place) {
	specs, of := slices.Clone(specs), *in
	if in.item.all { // what else it depends on is around the item
		of = *in.outer
	}
	of.pointers = make([]string, i+1)
	of.pointers[i] = in.at(i) + "/verify/judges/" + strconv.Itoa(k)
	specs[i] = Spec{Title: specs[i].Title, DependsOn: specs[i].Verify.Judges[k].DependsOn}
	return u.task(specs, i, &of)
}

// loop returns the loop that the task becomes, without what is written in dependsOn.
func (v *verification) loop() Spec {
	s, verdict := v.answer, v.base+": verdict"
	s.Title, s.Verify, s.Source.Record = v.base, nil, nil // the description is that of the task in it
	s.Repeat = &Repeat{MaxRounds: v.rounds(), Until: Equals(verdict, "/accepted", true), Output: v.base, OnLimit: "fail", OnRepeat: "continue"}
	if v.OnDissent == keep {
		s.Repeat.OnLimit = "last"
	}
	answer := v.answer
	answer.Title, answer.Verify, answer.When, answer.Instance, answer.DependsOn, answer.Uses = v.base, nil, nil, nil, nil, nil
	if v.rounds() > 1 {
		answer.DependsOn = []Ref{
			{Task: v.base, Round: Previous, Title: previousTitle, Need: []Path{Whole}, Files: filesOf(&s), Optional: true},
			{Task: verdict, Round: Previous, Title: objectionsTitle, As: Structured, Need: []Path{"/dissent/**"}, Optional: true},
		}
	}
	count := Spec{
		Title: verdict, Description: "Count the judges who accept the answer.", OutputSchema: fmt.Appendf(nil, verdictSchema, len(v.Judges)), Classification: s.Classification,
	}
	s.Repeat.Tasks = []Spec{answer}
	seen := map[string]int{}
	for k := range v.Judges {
		j := v.judge(k)
		if seen[j.Title]++; seen[j.Title] > 1 {
			j.Title += " " + strconv.Itoa(seen[j.Title])
		}
		s.Repeat.Tasks = append(s.Repeat.Tasks, j)
		count.DependsOn = append(count.DependsOn, Ref{Task: j.Title, As: Structured, Optional: true})
	}
	s.Repeat.Tasks = append(s.Repeat.Tasks, count)
	return s
}

// judge returns the task of judge k.
func (v *verification) judge(k int) Spec {
	s, j, asks := &v.answer, &v.Judges[k], v.asks(k, v.title)
	return Spec{
		Title: v.base + naming.JudgeMark + strings.TrimSpace(j.Agent), Description: asks + s.Description, Source: shifted(s.Source, len(asks)), Assignee: j.Agent,
		OutputSchema: []byte(judgeSchema), Uses: j.Uses, Tools: j.Tools, DependsOn: []Ref{{Task: v.base, Title: proposedTitle, Files: filesOf(s)}}, Classification: s.Classification,
		MaxRetries: s.MaxRetries, RetryDelay: s.RetryDelay, RetryBackoff: s.RetryBackoff, Timeout: s.Timeout, Reuse: s.Reuse, Priority: s.Priority,
	}
}

// complete adds to a task of a round what the rounds cannot have. which is 0 for the answer, then
// come the judges and the verdict; -1 is the loop.
func (v *verification) complete(s *Spec, at *Place, which int) {
	s.Instance.Title = v.title + strings.TrimPrefix(s.Instance.Title, v.base)
	switch {
	case which < 0:
		s.Instance.Key, s.Instance.Quorum = v.key, v.quorum()
	case which > len(v.Judges):
		s.Instance.Quorum = v.quorum()
	case which > 0:
		s.Instance.Judges = true
	default:
		at.Pointer, at.Uses, s.Uses = v.places[0].Pointer, v.places[0].Uses, v.answer.Uses
		if of := v.answer.Instance; of != nil {
			s.Instance.Lacks = of.Lacks
		}
		if s.Instance.Round > 1 {
			s.Description += reviseText
		}
	}
	if which >= 0 && which < len(v.deps) {
		s.DependsOn, at.DependsOn = slices.Concat(v.deps[which], s.DependsOn), v.places[which].DependsOn
	}
}

// asks returns the start of the description of judge k of a task, which its description follows.
func (v *Verify) asks(k int, title string) string {
	if v.Mode != lens {
		return fmt.Sprintf(refuteText, title)
	}
	aspect := strings.TrimSpace(v.Judges[k].Lens)
	if aspect == "" {
		aspect = lenses[v.lens(k)%len(lenses)]
	}
	return fmt.Sprintf(lensText, aspect, title)
}

// lens returns how many judges before judge k have a lens of the usual ones.
func (v *Verify) lens(k int) (n int) {
	for i := range v.Judges[:k] {
		if v.Judges[i].Lens == "" {
			n++
		}
	}
	return n
}

// filesOf returns which output files of a task its rounds pass on: all that it declares.
func filesOf(s *Spec) []Path {
	if len(s.OutputFiles) == 0 {
		return nil
	}
	return []Path{"/**"}
}

// shifted returns the source s of a text for its place n bytes into another text.
func shifted(s provenance.Source, n int) provenance.Source {
	s.Params = slices.Clone(s.Params)
	for k := range s.Params {
		s.Params[k].Start, s.Params[k].End = s.Params[k].Start+n, s.Params[k].End+n
	}
	return s
}

// rounds returns how many rounds there are at most.
func (v *Verify) rounds() int {
	switch {
	case v.OnDissent == reject || v.OnDissent == keep:
		return 1
	case v.MaxRounds == 0:
		return 2
	}
	return v.MaxRounds
}

// quorum returns how many judges must accept.
func (v *Verify) quorum() int {
	if v.Quorum == 0 {
		return (len(v.Judges) + 1) / 2
	}
	return v.Quorum
}

// checkVerify reports what is wrong with the judges of spec i.
func (u *unroller) checkVerify(s *Spec, in *scope, i int) bool {
	v, before := s.Verify, len(u.found.list)
	bad := func(path, message, hint string) { u.bad(in, i, "/verify"+path, "verify: "+message, hint) }
	u.checkWord(in, i, "/verify/mode", "verify: mode", v.Mode, refute, lens)
	u.checkWord(in, i, "/verify/onDissent", "verify: onDissent", v.OnDissent, revise, reject, keep)
	once := v.OnDissent == reject || v.OnDissent == keep
	switch {
	case in.depth >= maxNesting:
		bad("", fmt.Sprintf("a task with verify is a loop, and loops and lists are nested deeper than %d", maxNesting), "move the task out of a loop")
	case len(v.Judges) == 0:
		bad("/judges", "there are no judges", "name agents, such as [editor, lawyer]")
	case v.Quorum < 0 || v.Quorum > len(v.Judges):
		bad("/quorum", fmt.Sprintf("quorum is %d of %d judges", v.Quorum, len(v.Judges)), fmt.Sprintf("write how many must accept, from 1 to %d", len(v.Judges)))
	case v.MaxRounds < 0 || v.MaxRounds > maxRounds:
		bad("/maxRounds", fmt.Sprintf("maxRounds is %d", v.MaxRounds), fmt.Sprintf("write how many rounds there may be, from 1 to %d", maxRounds))
	case once && v.MaxRounds > 1:
		bad("/maxRounds", fmt.Sprintf("no effect with onDissent: %s, which ends after one round", v.OnDissent), "remove it, or write onDissent: revise")
	case !once && s.IsComputed():
		bad("/onDissent", "a task without an agent has the same result in each round", "write onDissent: reject or keep")
	}
	for k := range v.Judges {
		at := "/judges/" + strconv.Itoa(k)
		switch j := &v.Judges[k]; {
		case strings.TrimSpace(j.Agent) == "":
			bad(at, fmt.Sprintf("judges[%d] names no agent", k), "write the name of an agent")
		case j.Lens != "" && v.Mode != lens:
			bad(at+"/lens", fmt.Sprintf("judges[%d]: lens: no effect in mode refute", k), "remove it, or write mode: lens")
		case j.Lens != "" && naming.CheckLine(j.Lens) != nil:
			bad(at+"/lens", fmt.Sprintf("judges[%d]: lens: %v", k, naming.CheckLine(j.Lens)), "write a few words, such as legal risk")
		}
		for n := range v.Judges[k].DependsOn {
			if isNamed(s, v.Judges[k].DependsOn[n].Task) {
				bad(at+"/dependsOn/"+strconv.Itoa(n), fmt.Sprintf("judges[%d]: dependsOn[%d]: %s is the task that it judges", k, n, naming.Quote(s.Title)), "remove it: a judge gets the answer anyway")
			}
		}
	}
	u.checkCondition(in, i, "/when", "when", s.When)
	return len(u.found.list) == before
}
