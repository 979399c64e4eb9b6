package trace

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/promptview"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"

	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A Search is where a text occurs in a run, and where it comes from.
type Search struct {
	Occurrences []Occurrence `json:"occurrences"`
	Origins     []Origin     `json:"origins"`             // in the order of the run
	Unsearched  int          `json:"unsearched,omitzero"` // withheld pieces of prompts and results, which were not searched
}

// Where is the kind of text in which a text occurs.
type Where string

// The kinds of texts.
const (
	InPrompt     Where = "prompt"     // the user message of a prompt
	InSystem     Where = "system"     // the system prompt
	InResult     Where = "result"     // the text of a task's result
	InStructured Where = "structured" // the JSON of a task's result
	InAnswer     Where = "answer"     // the answer of the coordinator
)

// An Occurrence is one place where a text occurs.
type Occurrence struct {
	Where   Where       `json:"where"`
	Task    task.ID     `json:"task,omitempty"`
	Title   string      `json:"title,omitempty"`
	Agent   string      `json:"agent,omitempty"`
	Attempt int         `json:"attempt,omitempty"`
	Start   int         `json:"start"` // bytes of that text, [Start, End)
	End     int         `json:"end"`
	Loose   bool        `json:"loose,omitempty"` // only if whitespace is ignored
	Part    prompt.Part `json:"-"`               // of a prompt
	Sources []int32     `json:"-"`               // of a prompt: the sources of the range, as in its pieces
	Prompt  *Prompt     `json:"-"`               // nil for a result
}

// Contains returns every occurrence of a text, in the order of the run, and its origins. It
// searches each text for the exact bytes, also across the pieces of one part of a prompt; if
// there are none, it ignores whitespace. It does not search withheld pieces.
func (t *Trace) Contains(text string) Search {
	f, searched := NewFinder(text), *t
	searched.Prompts = slices.Clone(t.Prompts)
	for i := range searched.Prompts {
		f.prompt(&searched.Prompts[i])
	}
	return f.Search(&searched)
}

// A Finder searches the prompts of a trace for a text while it is read, so that their words need not be kept; see
// [ReadOptions].Finder.
type Finder struct{ needle needle }

// A finding is what a Finder found in one prompt, one result or the answer.
type finding struct {
	found    []Occurrence
	withheld int // pieces that could not be searched
}

// NewFinder returns a Finder of a text.
func NewFinder(text string) *Finder {
	return &Finder{needle: newNeedle(text)}
}

// prompt searches both texts of a prompt.
func (f *Finder) prompt(p *Prompt) {
	p.found = &finding{withheld: p.Withheld()}
	f.pieces(p.found, InSystem, p.System)
	f.pieces(p.found, InPrompt, p.Text)
}

// pieces searches a text: each run of pieces with words and of one part.
func (f *Finder) pieces(s *finding, where Where, pieces []promptview.Piece) {
	for len(pieces) > 0 {
		n := 1
		for n < len(pieces) && pieces[n].Part == pieces[0].Part && pieces[n].Withheld == pieces[0].Withheld {
			n++
		}
		f.stretch(s, where, pieces[:n])
		pieces = pieces[n:]
	}
}

func (f *Finder) stretch(s *finding, where Where, pieces []promptview.Piece) {
	text := pieces[0].Words
	if len(pieces) > 1 {
		var b strings.Builder
		for i := range pieces {
			b.WriteString(pieces[i].Words)
		}
		text = b.String()
	}
	first := int(pieces[0].Start)
	found, loose := f.needle.in(text)
	for _, at := range found {
		o := Occurrence{Where: where, Start: first + at.start, End: first + at.end, Loose: loose, Part: pieces[0].Part}
		for i := range pieces {
			if int(pieces[i].Start) < o.End && int(pieces[i].End) > o.Start && !slices.Contains(o.Sources, pieces[i].Source) {
				o.Sources = append(o.Sources, pieces[i].Source)
			}
		}
		s.found = append(s.found, o)
	}
}

// result searches the result of a task.
func (f *Finder) result(x *record.AgentCall) *finding {
	var s finding
	text, structured := "", ""
	switch {
	case x.Shown != nil:
		text, structured = x.Shown.Text, x.Shown.Structured
	case x.Result != nil:
		text, structured = cmp.Or(x.Result.Text, string(x.Result.JSON)), string(x.Result.JSON)
	}
	if f.text(&s, InResult, text); s.withheld == 0 {
		f.text(&s, InStructured, structured)
	}
	return &s
}

// text searches a text that is no prompt.
func (f *Finder) text(s *finding, where Where, text string) {
	if IsWithheld(text) {
		s.withheld = 1
		return
	}
	found, loose := f.needle.in(text)
	for _, at := range found {
		s.found = append(s.found, Occurrence{Where: where, Start: at.start, End: at.end, Loose: loose})
	}
}

// A searched text is a prompt or a result, at its time in the run.
type searchedText struct {
	at      int
	finding *finding
	prompt  *Prompt
	result  *runstate.Task
}

// inOrder returns the texts that were searched, in the order of the run.
func (f *Finder) inOrder(t *Trace) (list []searchedText) {
	for i := range t.Prompts {
		p := &t.Prompts[i]
		list = append(list, searchedText{at: p.at, finding: p.found, prompt: p})
	}
	for _, of := range t.State.Planned() {
		x := t.State.Accepted(of)
		if x == nil || !t.Ended() || t.State.Status(of) != task.Completed {
			continue
		}
		at := t.over // no event of its end was recorded
		if end, ok := t.ends[of.ID]; ok {
			at = end.last
		}
		list = append(list, searchedText{at: at, finding: f.result(x), result: of})
	}
	slices.SortStableFunc(list, func(a, b searchedText) int { return cmp.Compare(a.at, b.at) })
	return list
}

// Search returns what was found in a trace that was read with the Finder, as
// [Trace.Contains] would.
func (f *Finder) Search(t *Trace) Search {
	s := search{trace: t, inPrompt: map[task.ID]finding{}, seenBy: map[string]bool{}, from: map[Origin]bool{}}
	for _, st := range f.inOrder(t) {
		if st.prompt != nil {
			s.prompt(st.prompt, st.finding)
		} else {
			s.result(st.result, st.finding)
		}
	}
	if end := t.State.End; end != nil {
		var answer finding
		f.text(&answer, InAnswer, end.Answer)
		s.add(answer.found, answer.withheld, Occurrence{Task: answering, Title: "synthesis", Agent: coordinator})
		if len(answer.found) > 0 {
			s.work(answering, "synthesis", coordinator)
		}
	}
	return s.out
}

// A search collects occurrences and origins in the order of the run.
type search struct {
	trace    *Trace
	out      Search
	inPrompt map[task.ID]finding // of the last prompt of each task, with the turns before it
	seenBy   map[string]bool     // agents with a prompt that contained the text
	from     map[Origin]bool
}

// laterTurn matches the session of a later turn of a conversation.
var laterTurn = regexp.MustCompile(record.TurnPrefix + `[0-9]+$`)

// add adds the occurrences in a text of a task.
func (s *search) add(found []Occurrence, withheld int, of Occurrence) {
	s.out.Unsearched += withheld
	for _, o := range found {
		o.Task, o.Title, o.Agent, o.Attempt, o.Prompt = of.Task, of.Title, of.Agent, of.Attempt, of.Prompt
		s.out.Occurrences = append(s.out.Occurrences, o)
	}
}

// prompt adds the occurrences in a prompt.
func (s *search) prompt(p *Prompt, in *finding) {
	before := len(s.out.Occurrences)
	s.add(in.found, in.withheld, Occurrence{Task: p.Receipt.Task, Title: p.Title, Agent: p.Agent, Attempt: p.Attempt, Prompt: p})
	for i := before; i < len(s.out.Occurrences); i++ {
		s.sources(&s.out.Occurrences[i])
	}
	had := *in
	if laterTurn.MatchString(p.Receipt.Session) { // it adds to the prompt of the turn before
		before := s.inPrompt[p.Receipt.Task]
		had = finding{found: slices.Concat(before.found, in.found), withheld: before.withheld + in.withheld}
	}
	s.inPrompt[p.Receipt.Task] = had
	s.seenBy[p.Agent] = s.seenBy[p.Agent] || len(in.found) > 0
}

// result adds the occurrences in a result. Its task is an origin, unless its prompt had the
// text.
func (s *search) result(of *runstate.Task, in *finding) {
	s.add(in.found, in.withheld, Occurrence{Task: of.ID, Title: of.Title, Agent: of.Agent})
	if len(in.found) > 0 {
		s.work(of.ID, of.Title, of.Agent)
	}
}

// IsWithheld reports whether a text only says that a result is withheld.
func IsWithheld(text string) bool {
	return strings.HasPrefix(text, "[withheld: ") && strings.HasSuffix(text, "]") && !strings.Contains(text, "\n")
}
