package explain

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/trace"
)

// found lists where a text occurs, in JSON.
type found struct {
	Occurrences []occurrence   `json:"occurrences"`
	Origins     []trace.Origin `json:"origins"` // the first is the original source
	Unsearched  int            `json:"unsearched"`
}

// occurrence is one place, with the sources of its bytes in a prompt.
type occurrence struct {
	trace.Occurrence
	Part string   `json:"part,omitempty"`
	From []string `json:"from,omitempty"`
}

// found returns the occurrences in the selected tasks, and all origins.
func (x *Document) found(s trace.Search, only func(task string) bool) *found {
	f := &found{Occurrences: []occurrence{}, Origins: append([]trace.Origin{}, s.Origins...), Unsearched: s.Unsearched}
	for _, o := range s.Occurrences {
		if !only(string(o.Task)) {
			continue
		}
		out := occurrence{Occurrence: o}
		if o.Prompt != nil {
			out.Part = o.Part.String()
			for _, source := range o.Sources {
				out.From = append(out.From, x.from(o.Prompt, source, o.Part))
			}
		}
		f.Occurrences = append(f.Occurrences, out)
	}
	return f
}

// writeSearch writes where a text occurs.
func (x *Document) writeSearch(w io.Writer) {
	f := x.Search
	fmt.Fprintln(w, x.headline())
	fmt.Fprintf(w, "\n%s %s\n", terminal.CleanLine(strconv.Quote(x.Text)), f.times(x.task))
	for i, o := range f.Origins {
		how := "comes from"
		if i > 0 {
			how = "also from"
		}
		fmt.Fprintf(w, "  %s %s\n", how, terminal.CleanLine(originText(o)))
		if o.Unseen > 0 {
			fmt.Fprintf(w, "    unless it occurs in withheld parts of its prompt: %s\n", format.Plural(o.Unseen, "piece"))
		}
	}
	for i := range f.Occurrences {
		f.Occurrences[i].write(w)
	}
	if f.Unsearched > 0 {
		fmt.Fprintf(w, "\nnot searched: %s, which you may not see\n", format.Plural(f.Unsearched, "piece"))
	}
}

// times says how often a text occurs.
func (f *found) times(task string) string {
	in := "nothing that was recorded"
	if f.Unsearched > 0 {
		in = "nothing that may be shown"
	}
	if task != "" {
		in += " of " + terminal.CleanLine(task)
	}
	if n := len(f.Occurrences); n > 0 {
		return "occurs in " + format.Plural(n, "place")
	}
	return "occurs in " + in
}

// originText says who introduced a text.
func originText(o trace.Origin) string {
	switch o.Kind {
	case trace.FromSpec:
		if o.By == "runteam" {
			return "the words of runteam itself"
		}
		return o.Name + ", as it is written"
	case trace.FromInput:
		return "input " + o.Name + " of " + o.By
	case trace.FromGoal:
		return "the goal of " + o.By
	case trace.FromTask:
		return o.By + ", who did " + o.Name
	case trace.FromMessage:
		return "a message of " + o.By
	}
	return o.Name + " of " + o.By
}

// places names the texts that are searched.
var places = map[trace.Where]string{
	trace.InPrompt: "user message", trace.InSystem: "system prompt", trace.InResult: "result", trace.InStructured: "structured result", trace.InAnswer: "answer",
}

func (o *occurrence) write(w io.Writer) {
	place := fmt.Sprintf("%s %d–%d", places[o.Where], o.Start, o.End)
	if o.Loose {
		place += ", with different whitespace"
	}
	fmt.Fprintf(w, "\n%s\n", format.Dotted(o.Title, o.Agent, attemptText(o.Attempt), place))
	if len(o.From) > 0 {
		fmt.Fprintf(w, "  %s\n", terminal.CleanLine(format.Readers(strings.Join(o.From, "; "))))
	}
}
