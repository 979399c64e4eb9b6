package trace

import (
	"cmp"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/promptview"

	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A Search says where a text occurs in a run, and who brought it in.
type Search struct {
	Occurrences []Occurrence `json:"occurrences"`
	Origins     []Origin     `json:"origins"`             // in the order of the run: the first is where the text comes from
	Unsearched  int          `json:"unsearched,omitzero"` // pieces of prompts, and results, that were not searched, since they are withheld
}

// Where says in what a text occurs.
type Where string

// The places.
const (
	InPrompt     Where = "prompt"     // the user message of a prompt
	InSystem     Where = "system"     // the system prompt
	InResult     Where = "result"     // the text of a task's result
	InStructured Where = "structured" // the JSON of a task's result
	InAnswer     Where = "answer"     // what the coordinator answered
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
	Loose   bool        `json:"loose,omitempty"` // it does only if white space does not count
	Part    prompt.Part `json:"-"`               // of a prompt: what the range is for
	Sources []int32     `json:"-"`               // of a prompt: what stands behind the range, as in its pieces
	Prompt  *Prompt     `json:"-"`               // nil for a result
}

// Contains returns every place where a text occurs, in the order of the run,
// and where it comes from. It looks at each text for the exact bytes, also
// across pieces of one part of a prompt; if there are none, without regard to
// white space. Withheld pieces have no words here and are not searched.
func (t *Trace) Contains(text string) Search {
	f := NewFinder(text)
	for i := range t.Prompts {
		f.prompt(&t.Prompts[i])
	}
	if t.Result != nil {
		for i := range t.Result.Tasks {
			f.Result(&t.Result.Tasks[i])
		}
		f.Answer(t.Result.Output)
	}
	return f.Search(t)
}

// A Finder looks for a text in a trace while it is read, see
// [ReadOptions].Finder, so that the texts need not be kept.
type Finder struct {
	needle  needle
	prompts []sight // in the order of the trace
	results map[task.ID]sight
	answer  sight
}

// A sight is what a Finder saw of one prompt, of one result or of the answer.
type sight struct {
	found    []Occurrence
	withheld int // pieces that could not be searched
}

// NewFinder returns a Finder of a text.
func NewFinder(text string) *Finder {
	return &Finder{needle: newNeedle(text), results: map[task.ID]sight{}}
}

// prompt looks at both texts of a prompt.
func (f *Finder) prompt(p *Prompt) {
	s := sight{withheld: p.Withheld()}
	f.pieces(&s, InSystem, p.System)
	f.pieces(&s, InPrompt, p.Text)
	f.prompts = append(f.prompts, s)
}

// pieces looks at a text: at each stretch that has words and is for one thing.
func (f *Finder) pieces(s *sight, where Where, pieces []promptview.Piece) {
	for len(pieces) > 0 {
		n := 1
		for n < len(pieces) && pieces[n].Part == pieces[0].Part && pieces[n].Withheld == pieces[0].Withheld {
			n++
		}
		f.stretch(s, where, pieces[:n])
		pieces = pieces[n:]
	}
}

func (f *Finder) stretch(s *sight, where Where, pieces []promptview.Piece) {
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

// Result looks at the result of a task. A later one of the same task takes the
// place of one before.
func (f *Finder) Result(res *TaskResult) {
	var s sight
	if withheld(res.Text) {
		s.withheld = 1
	} else {
		f.text(&s, InResult, res.Text)
		f.text(&s, InStructured, string(res.Structured))
	}
	f.results[res.ID] = s
}

// Answer looks at the answer of the coordinator.
func (f *Finder) Answer(text string) {
	if f.answer = (sight{}); withheld(text) {
		f.answer.withheld = 1
		return
	}
	f.text(&f.answer, InAnswer, text)
}

// text looks at a text that is no prompt.
func (f *Finder) text(s *sight, where Where, text string) {
	found, loose := f.needle.in(text)
	for _, at := range found {
		s.found = append(s.found, Occurrence{Where: where, Start: at.start, End: at.end, Loose: loose})
	}
}

// A station is a prompt or a result, in the order of the run.
type station struct {
	at     int
	sight  *sight
	prompt *Prompt
	result *TaskResult
}

func (f *Finder) stations(t *Trace) (list []station) {
	for i := range f.prompts {
		p := &t.Prompts[i]
		list = append(list, station{at: t.order[p], sight: &f.prompts[i], prompt: p})
	}
	if t.Result != nil {
		for i := range t.Result.Tasks {
			res := &t.Result.Tasks[i]
			s, seen := f.results[res.ID]
			if res.Status != task.Completed || !seen {
				continue
			}
			at := 2 * len(t.Events) // no event tells when
			if of, ok := t.ends[res.ID]; ok {
				at = of.last
			}
			list = append(list, station{at: at, sight: &s, result: res})
		}
	}
	slices.SortStableFunc(list, func(a, b station) int { return cmp.Compare(a.at, b.at) })
	return list
}

// Search returns what was found in a trace, which the Finder has read. The
// occurrences and their order are those that [Trace.Contains] would return.
func (f *Finder) Search(t *Trace) Search {
	s := search{trace: t, saw: map[task.ID]sight{}, told: map[string]bool{}, from: map[Origin]bool{}}
	for _, st := range f.stations(t) {
		if st.prompt != nil {
			s.prompt(st.prompt, st.sight)
		} else {
			s.result(st.result, st.sight)
		}
	}
	if t.Result != nil && len(t.Result.Steps) > 0 {
		s.add(f.answer.found, f.answer.withheld, Occurrence{Task: answering, Title: "synthesis", Agent: coordinator})
		if len(f.answer.found) > 0 {
			s.work(answering, "synthesis", coordinator)
		}
	}
	return s.out
}

// A search is under way.
type search struct {
	trace *Trace
	out   Search
	saw   map[task.ID]sight // of the last prompt of each task
	told  map[string]bool   // agents of which a prompt contained the text
	from  map[Origin]bool
}

// add adds what was found in a text of a task.
func (s *search) add(found []Occurrence, withheld int, of Occurrence) {
	s.out.Unsearched += withheld
	for _, o := range found {
		o.Task, o.Title, o.Agent, o.Attempt, o.Prompt = of.Task, of.Title, of.Agent, of.Attempt, of.Prompt
		s.out.Occurrences = append(s.out.Occurrences, o)
	}
}

// prompt adds what was found in a prompt.
func (s *search) prompt(p *Prompt, saw *sight) {
	before := len(s.out.Occurrences)
	s.add(saw.found, saw.withheld, Occurrence{Task: p.Receipt.Task, Title: p.Title, Agent: p.Agent, Attempt: p.Attempt, Prompt: p})
	for i := before; i < len(s.out.Occurrences); i++ {
		s.sources(&s.out.Occurrences[i])
	}
	s.saw[p.Receipt.Task] = *saw
	s.told[p.Agent] = s.told[p.Agent] || len(saw.found) > 0
}

// result adds what was found in a result. Its task is where the text comes from,
// unless its own prompt had it.
func (s *search) result(res *TaskResult, saw *sight) {
	s.add(saw.found, saw.withheld, Occurrence{Task: res.ID, Title: res.Title, Agent: res.Assignee})
	if len(saw.found) > 0 {
		s.work(res.ID, res.Title, res.Assignee)
	}
}

// withheld reports whether a result is above the clearance of the caller.
func withheld(text string) bool {
	return strings.HasPrefix(text, "[withheld: ") && strings.HasSuffix(text, "]") && !strings.Contains(text, "\n")
}
