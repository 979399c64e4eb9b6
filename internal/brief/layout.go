package brief

import "strconv"

// A Layout is the shape of a prompt: its sections, and the context that they may
// contain.
type Layout uint8

// The layouts. The zero value is Work.
const (
	Work      Layout = iota // a task of the graph, with what it was granted
	Planning                // the coordinator divides a goal into tasks
	Synthesis               // the coordinator answers a goal from results
	Layouts                 // how many there are
)

var layoutNames = [Layouts]string{"work", "planning", "synthesis"}

// String returns the layout's name.
func (l Layout) String() string {
	if l < Layouts {
		return layoutNames[l]
	}
	return "layout " + strconv.Itoa(int(l))
}

// Reserved returns how no line of an instruction may begin in this layout.
func (l Layout) Reserved() []string {
	if l == Work {
		return openers
	}
	return goalOpeners
}
