package gate

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// A Grant lets one source be delivered to the agent.
type Grant struct {
	Source Source
	Paths  []task.Path // what of it, as package pick reads allow paths; empty means nothing, [task.Whole] means all
	At     string      // of a folder: where in the workspace, since an input may be at several places; empty for anywhere
	Line   string      // where it is written, for people: "uses" or "team.yaml:12 dependsOn"

	// Terms are what the policy says of the pair; nil means that it says nothing.
	Terms *Terms

	// Reveal names personal kinds that the grant delivers in clear, and where, in
	// addition to those of Terms. Secrets never do.
	Reveal map[redact.Kind][]task.Path

	// MaxBytes limits what is delivered: a longer text is cut, a longer structured
	// value is withheld. Zero means [DefaultContextBytes], or
	// [DefaultStructuredBytes] for a dependency in the form structured or both.
	MaxBytes int

	// Item is the path of the item of a list that is delivered in place of the value. Paths grant
	// nothing else of the list.
	Item task.Path

	// List has the value decoded in which Item is, for the grants of many items; nil decodes it
	// for this one.
	List *List

	// Names says which keys of the value a decision may show; nil shows those
	// that paths of the grant and its terms name, and * for any other.
	Names Namer

	// Approved says that a person approved that the declassifier of Terms lowers the value. One
	// that needs an approval does not apply without it.
	Approved bool

	checked   bool // in a handshake, so that selection is valid
	selection pick.Selection
}

// Admit rules on the label of a value, as [Terms.Admit] does, without a declassifier that lacks its
// approval.
func (g *Grant) Admit(level, clearance label.Classification, to string) Admission {
	x := g.Terms.Admit(level, clearance, to)
	if x.Lowers != nil && x.Lowers.Approve != "" && !g.Approved {
		unapproved := *g.Terms
		unapproved.lower = nil
		x = unapproved.Admit(level, clearance, to)
	}
	return x
}

// A Namer writes a path for people who may not know every key of a value: keys
// that neither spec nor schema names become *.
type Namer interface {
	Shown(p task.Path) task.Path
}

// WholeOf returns the grant of a source as a whole, for a task that does not
// say what it needs of it. A grant with a list of its own says so, even if that
// is [task.Whole]: under a rule that is scoped without a list it delivers, and
// WholeOf does not. The Paths of WholeOf are shared and must not be written to.
func WholeOf(s Source, line string) Grant {
	return Grant{Source: s, Paths: whole, Line: line}
}

// limit returns the most bytes that the grant delivers in the form as.
func (g *Grant) limit(as task.Payload) int {
	switch {
	case g.MaxBytes > 0:
		return g.MaxBytes
	case g.Source.Kind == handoff.Dependency && (as == task.Structured || as == task.Both):
		return DefaultStructuredBytes
	}
	return DefaultContextBytes
}

var whole = []task.Path{task.Whole}

// fewGrants is how many grants are searched one by one.
const fewGrants = 16

// checkGrants returns grants that share nothing with those given that could be
// changed, unless they are owned, or a [*Refusal] of what the gate could not
// enforce: a grant without a source, and what is no path.
func checkGrants(grants []Grant, owned bool) ([]Grant, error) {
	if len(grants) == 0 {
		return nil, nil
	}
	out := grants
	if !owned {
		out = slices.Clone(grants)
	}
	for i := range out {
		g := &out[i]
		if g.Source.Kind == "" || g.Source.Name == "" {
			return nil, &Refusal{Rule: RuleGrant, Reason: "a grant names no source", Hint: "name a dependency or an input"}
		}
		if !owned {
			g.copyLists()
		}
		var err error
		g.checked = false
		if g.selection, err = g.selects(); err != nil {
			return nil, &Refusal{Rule: RuleGrant, Reason: fmt.Sprintf("the grant of %s %q: %v", g.Source.Kind, g.Source.Name, err)}
		}
		g.checked = true
	}
	return out, nil
}

// copyLists makes the lists of a grant its own. The Paths of [WholeOf] never change.
func (g *Grant) copyLists() {
	if g.needs() {
		g.Paths = slices.Clone(g.Paths)
	}
	g.Reveal = cloneReveal(g.Reveal)
}

func isWhole(paths []task.Path) bool { return len(paths) == 1 && paths[0] == task.Whole }

// needs reports whether the task says what it needs: Paths are not those of [WholeOf].
func (g *Grant) needs() bool { return !isWhole(g.Paths) || &g.Paths[0] != &whole[0] }

// selects returns what of a structured value the grant delivers.
func (g *Grant) selects() (pick.Selection, error) {
	switch {
	case g.checked:
		return g.selection, nil
	case len(g.Paths) == 0:
		return pick.Selection{}, nil
	case g.Terms == nil && isWhole(g.Paths), g.Terms != nil && Instructs(g.Source, g.Terms.from):
		return pick.Everything(), nil
	case !g.needs():
		return g.Terms.Delivers(nil)
	}
	return g.Terms.Delivers(g.Paths)
}

// A Part is one piece of context as the label of a task counts it.
type Part struct {
	Classification label.Classification // what it is delivered with, see [Terms.Admit]
	Withheld       bool                 // it is certain to be withheld
	Optional       bool
}

// Label returns the request label of a task: the join of its own
// classification and of everything that will be delivered. An optional part
// that will be withheld does not count; one that is needed and withheld does, so that
// the handshake refuses the task.
func Label(own label.Classification, parts []Part) label.Classification {
	level := own
	for _, p := range parts {
		if !p.Optional || !p.Withheld {
			level = level.Join(p.Classification)
		}
	}
	return level
}
