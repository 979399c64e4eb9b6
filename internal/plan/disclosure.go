package plan

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// Limits on the bytes of one source that may be lowered below its label through
// the results of one producer. Above disclosureWarning there is a warning, above
// maxDisclosure an error, unless the declassifier says unsafeText.
const (
	disclosureWarning = 64
	maxDisclosure     = 1 << 10
)

// A PlannedLowering is a result whose parts a declassifier may deliver to a reader below
// their label, and how many bytes they can carry at most: [flow.Unbounded] where no schema
// bounds them.
type PlannedLowering struct {
	By      string               `json:"by"`             // the declassifier
	From    string               `json:"from"`           // the producer
	Result  string               `json:"result"`         // the title of its task, or what else it made
	To      string               `json:"to"`             // the reader
	Task    string               `json:"task,omitempty"` // the title of the reader's task; empty for the user and tools
	Label   label.Classification `json:"label"`
	LowerTo label.Classification `json:"lowerTo"`
	Paths   []flow.LoweredPath   `json:"paths"`
	Bytes   int                  `json:"bytes"`
}

// A PlannedDisclosure says how many bytes of one source all results of one producer can
// disclose below its label; see [flow.Disclosure].
type PlannedDisclosure struct {
	Producer string   `json:"producer"`
	Of       string   `json:"of"`      // the source that it can disclose most of, such as input "claim"
	Results  []string `json:"results"` // the titles of the tasks
	Bytes    int      `json:"bytes"`
}

// lowers reports whether the policy has a declassifier.
func lowers(p *handoff.Policy) bool { return p != nil && len(p.Declassify) > 0 }

// checkDisclosures bounds what declassifiers can carry together.
func (c *checker) checkDisclosures() {
	if !lowers(c.team.Config.Policy) || len(c.found) > 0 {
		return
	}
	table := c.plan.Flow()
	g := table.Graph()
	for _, d := range table.Disclosures() {
		by := c.largestCarrier(g, &d)
		p := task.Problem{
			Pointer: naming.Pointer("policy", "declassify", by, "paths"), Subject: fmt.Sprintf("%q", c.team.Config.Policy.Declassify[by].Name),
			Message: fmt.Sprintf("what %q makes can carry %d bytes of %s below its label, in %d %s, by all declassifiers together", d.Producer, d.Bytes, sourceName(g, d.Source), len(d.Results), plural(len(d.Results), "result")),
			Hint:    "bound the values more closely in the outputSchema, or name fewer paths",
		}
		switch {
		case d.Safe > maxDisclosure:
			p.Message = fmt.Sprintf("%s: at most %d are allowed", p.Message, maxDisclosure)
			p.Hint += ", or set unsafeText: true if they may carry whatever their producer has read"
			p.Err = task.ErrInvalid
			c.add(p)
		case d.Bytes > disclosureWarning: // what nothing bounds has a warning of its own
			c.advice = append(c.advice, p)
		}
	}
}

// largestCarrier returns the index of the declassifier that carries most of a disclosure.
func (c *checker) largestCarrier(g *flow.Graph, d *flow.Disclosure) int {
	name, most := "", -2
	look := func(source int, l *flow.Lowering) {
		if l != nil && slices.Contains(d.Results, source) && !l.Unsafe && l.Bytes() > most || l != nil && name == "" {
			name, most = l.Name, l.Bytes()
		}
	}
	for i := range g.Edges {
		look(g.Edges[i].Source, g.Edges[i].Lowers)
	}
	for i := range g.Sights {
		look(g.Sights[i].Source, g.Sights[i].Lowers)
	}
	return max(slices.IndexFunc(c.team.Config.Policy.Declassify, func(d handoff.Declassifier) bool { return d.Name == name }), 0)
}

// describeLowered fills in what declassifiers may deliver.
func (p *Plan) describeLowered(t *Roster) {
	if !lowers(t.Config.Policy) {
		return
	}
	table := p.Flow()
	g := table.Graph()
	add := func(source int, reader, title string, l *flow.Lowering, level flow.Reach) {
		if l == nil || level == flow.Never {
			return
		}
		s := &g.Sources[source]
		p.Lowered = append(p.Lowered, PlannedLowering{
			By: l.Name, From: s.From, Result: s.Name, To: reader, Task: title, Label: s.Label, LowerTo: l.To, Paths: l.Paths, Bytes: l.Bytes(),
		})
	}
	for i := range g.Edges {
		e := &g.Edges[i]
		tk := &g.Tasks[e.Task]
		title, reader := tk.Title, ""
		if tk.Agent != flow.Nobody {
			reader = g.Readers[tk.Agent].Name
		} else if at, isLoop := p.Graph.Index(tk.ID); isLoop {
			reader = p.Graph.Task(at).Assignee // its condition is read for the agent of its result
		}
		if g.Sources[e.Source].Kind == handoff.Arguments {
			title = "" // the source names the task
		}
		add(e.Source, reader, title, e.Lowers, e.Reach())
	}
	for i := range g.Sights {
		s := &g.Sights[i]
		add(s.Source, g.Readers[s.Reader].Name, "", s.Lowers, s.Reach())
	}
	for _, d := range table.Disclosures() {
		out := PlannedDisclosure{Producer: d.Producer, Of: sourceName(g, d.Source), Bytes: d.Bytes}
		for _, s := range d.Results {
			out.Results = append(out.Results, g.Sources[s].Name)
		}
		p.Disclosed = append(p.Disclosed, out)
	}
}

// sourceName names a source for people, such as input "claim".
func sourceName(g *flow.Graph, source int) string {
	s := &g.Sources[source]
	return flow.Step{Kind: string(s.Kind), Name: s.Name}.String()
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
