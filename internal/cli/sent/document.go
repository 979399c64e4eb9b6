package sent

import (
	"fmt"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/task"
)

// A Document lists the handoffs of a run, in JSON.
type Document struct {
	Run      string    `json:"runId"`
	Handoffs []Handoff `json:"handoffs"`
	heading  string
}

// NewDocument returns the handoffs of a run, or of one of its tasks unless that is empty.
func NewDocument(k *journals.StoredRun, id task.ID, agent string) *Document {
	d := &Document{Run: k.Run, Handoffs: Of(k), heading: journals.Heading(k.Name, k.Run)}
	if id != "" {
		d.Handoffs = AboutTask(d.Handoffs, id, agent)
	}
	return d
}

// Counts is how many handoffs a run has.
type Counts struct {
	Sent   int `json:"sent"`
	Unread int `json:"unread"`
}

// Count counts handoffs.
func Count(list []Handoff) *Counts {
	if len(list) == 0 {
		return nil
	}
	c := &Counts{Sent: len(list)}
	for i := range list {
		if list[i].Unread() {
			c.Unread++
		}
	}
	return c
}

// String returns the counts in words, such as "3 handoffs, 1 unread".
func (c *Counts) String() string {
	text := format.Plural(c.Sent, "handoff")
	if c.Unread > 0 {
		text += fmt.Sprintf(", %d unread", c.Unread)
	}
	return text
}

// Write writes the document as text.
func (d *Document) Write(w io.Writer) {
	counts := Count(d.Handoffs)
	if counts == nil {
		fmt.Fprintf(w, "%s: no handoffs\n", d.heading)
		return
	}
	fmt.Fprintf(w, "%s: %s\n", d.heading, counts)
	for i := range d.Handoffs {
		d.Handoffs[i].write(w)
	}
}

// write writes a handoff as text.
func (h *Handoff) write(w io.Writer) {
	facts := []string{h.Created.Local().Format(time24), h.From + " → " + h.To}
	if h.Meta.Task != "" {
		facts = append(facts, fmt.Sprintf("sent by %s in %s", h.Meta.Title, place(h.Meta.Attempt, h.Meta.Turn)))
	}
	if h.Meta.Label != nil {
		facts = append(facts, h.Meta.Label.String())
	}
	fmt.Fprintf(w, "\n%s\n", terminal.CleanLine(strings.Join(facts, " · ")))
	for i := range h.Meta.Read {
		r := &h.Meta.Read[i]
		verb := "read by"
		if !r.Delivered() {
			verb = "withheld from"
		}
		fmt.Fprintf(w, "  %s %s (%s) in %s at %s\n", verb, terminal.CleanLine(r.Title), terminal.CleanLine(r.Agent), place(r.Attempt, r.Turn), r.Time.Local().Format(time24))
	}
	if h.Unread() {
		fmt.Fprintln(w, "  unread")
	}
	p := &h.Payload
	fmt.Fprintf(w, "  │ %s\n", strings.ReplaceAll(strings.TrimRight(terminal.Clean(p.Message), "\n"), "\n", "\n  │ "))
	if len(p.Structured) > 0 {
		fmt.Fprintf(w, "  structured %s\n", terminal.CleanLine(string(p.Structured)))
	}
	for _, a := range p.Artifacts {
		fmt.Fprintf(w, "  %s %s\n", terminal.CleanLine(a.Type), terminal.CleanLine(a.Ref))
	}
	if s := p.Status; s != nil {
		fmt.Fprintf(w, "  status %s\n", terminal.CleanLine(strings.TrimSuffix(map[bool]string{true: "ok", false: "not ok"}[s.OK]+": "+s.Reason, ": ")))
	}
	if len(p.Meta) > 0 {
		fmt.Fprintf(w, "  meta %s\n", terminal.CleanLine(string(p.Meta)))
	}
	if r := p.Response; r != nil {
		fmt.Fprintf(w, "  response %s, to %s%s\n", terminal.CleanLine(r.Expectation), terminal.CleanLine(r.ReplyTo), h.replyText())
	}
	if h.ContextRef != "" {
		fmt.Fprintf(w, "  answers %s\n", terminal.CleanLine(h.ContextRef))
	}
}

// replyText returns a clause that says what became of the reply; empty if none is awaited.
func (h *Handoff) replyText() string {
	switch r := h.Meta.Reply; {
	case r == nil:
		return ""
	case r.State == replyInterrupted && h.Unread():
		return ": the run was interrupted before it was read"
	case r.State == replyInterrupted:
		return ": the run was interrupted before there was a reply"
	case r.State == replyNone:
		return ": there was no reply" + format.Unless(r.Code == "", " ("+r.Code+")")
	case r.By != "":
		return ": answered by " + terminal.CleanLine(r.By)
	default:
		return ": " + r.State
	}
}

// time24 is how times of a day are written.
const time24 = "15:04:05"

// place names an attempt and a turn; the first attempt is not named.
func place(attempt, turn int) string {
	if attempt > 1 {
		return fmt.Sprintf("attempt %d, turn %d", attempt, turn)
	}
	return fmt.Sprintf("turn %d", turn)
}
