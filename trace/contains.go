package trace

import (
	"cmp"
	"slices"
	"strings"

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
// white space. What is withheld has no words here and is not searched.
func (t *Trace) Contains(text string) Search {
	s := search{trace: t, needle: newNeedle(text), saw: map[task.ID]sight{}, told: map[string]bool{}, from: map[Origin]bool{}}
	for _, st := range t.stations() {
		if st.prompt != nil {
			s.prompt(st.prompt)
		} else {
			s.result(st.result)
		}
	}
	s.answer()
	return s.out
}

// A station is a prompt or a result, in the order of the run.
type station struct {
	at     int
	prompt *Prompt
	result *TaskResult
}

func (t *Trace) stations() (list []station) {
	for i := range t.Prompts {
		p := &t.Prompts[i]
		list = append(list, station{at: t.order[p], prompt: p})
	}
	if t.Result != nil {
		for i := range t.Result.Tasks {
			res := &t.Result.Tasks[i]
			if res.Status != task.Completed {
				continue
			}
			at := 2 * len(t.Events) // nobody was told when
			if of, ok := t.ends[res.ID]; ok {
				at = of.last
			}
			list = append(list, station{at: at, result: res})
		}
	}
	slices.SortStableFunc(list, func(a, b station) int { return cmp.Compare(a.at, b.at) })
	return list
}

// A search is under way.
type search struct {
	trace  *Trace
	needle needle
	out    Search
	saw    map[task.ID]sight // of the last prompt of each task
	told   map[string]bool   // agents of which a prompt contained the text
	from   map[Origin]bool
}

// A sight is what a prompt says of a text.
type sight struct {
	has      bool
	withheld int
}

// prompt looks at both texts of a prompt.
func (s *search) prompt(p *Prompt) {
	before := len(s.out.Occurrences)
	s.pieces(p, InSystem, p.System)
	s.pieces(p, InPrompt, p.Text)
	has, withheld := len(s.out.Occurrences) > before, p.Withheld()
	s.out.Unsearched += withheld
	for i := before; i < len(s.out.Occurrences); i++ {
		s.sources(&s.out.Occurrences[i])
	}
	s.saw[p.Receipt.Task] = sight{has, withheld}
	s.told[p.Agent] = s.told[p.Agent] || has
}

// pieces looks at a text: at each stretch that has words and is for one thing.
func (s *search) pieces(p *Prompt, where Where, pieces []prompt.Piece) {
	for len(pieces) > 0 {
		n := 1
		for n < len(pieces) && pieces[n].Part == pieces[0].Part && pieces[n].Withheld == pieces[0].Withheld {
			n++
		}
		s.stretch(p, where, pieces[:n])
		pieces = pieces[n:]
	}
}

func (s *search) stretch(p *Prompt, where Where, pieces []prompt.Piece) {
	text := pieces[0].Words
	if len(pieces) > 1 {
		var b strings.Builder
		for i := range pieces {
			b.WriteString(pieces[i].Words)
		}
		text = b.String()
	}
	first := int(pieces[0].Start)
	found, loose := s.needle.in(text)
	for _, at := range found {
		o := Occurrence{Where: where, Task: p.Receipt.Task, Title: p.Title, Agent: p.Agent, Attempt: p.Attempt, Start: first + at.start, End: first + at.end, Loose: loose, Part: pieces[0].Part, Prompt: p}
		for i := range pieces {
			if int(pieces[i].Start) < o.End && int(pieces[i].End) > o.Start && !slices.Contains(o.Sources, pieces[i].Source) {
				o.Sources = append(o.Sources, pieces[i].Source)
			}
		}
		s.out.Occurrences = append(s.out.Occurrences, o)
	}
}

// result looks at what a task came to. Whoever wrote it is where the text
// comes from, unless its own prompt had it.
func (s *search) result(res *TaskResult) {
	if withheld(res.Text) {
		s.out.Unsearched++
		return
	}
	before := len(s.out.Occurrences)
	of := Occurrence{Task: res.ID, Title: res.Title, Agent: res.Assignee}
	s.text(of, InResult, res.Text)
	s.text(of, InStructured, string(res.Structured))
	if len(s.out.Occurrences) > before {
		s.work(res.ID, res.Title, res.Assignee)
	}
}

// answer looks at what the coordinator answered.
func (s *search) answer() {
	res := s.trace.Result
	if res == nil || len(res.Steps) == 0 {
		return
	}
	if withheld(res.Output) {
		s.out.Unsearched++
		return
	}
	before := len(s.out.Occurrences)
	s.text(Occurrence{Task: answering, Title: "synthesis", Agent: coordinator}, InAnswer, res.Output)
	if len(s.out.Occurrences) > before {
		s.work(answering, "synthesis", coordinator)
	}
}

// text looks at a text that is no prompt.
func (s *search) text(of Occurrence, where Where, text string) {
	found, loose := s.needle.in(text)
	for _, at := range found {
		of.Where, of.Start, of.End, of.Loose = where, at.start, at.end, loose
		s.out.Occurrences = append(s.out.Occurrences, of)
	}
}

// withheld reports a result that is above the clearance of the caller.
func withheld(text string) bool {
	return strings.HasPrefix(text, "[withheld: ") && strings.HasSuffix(text, "]") && !strings.Contains(text, "\n")
}
