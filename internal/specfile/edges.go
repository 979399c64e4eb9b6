package specfile

import (
	"fmt"

	"github.com/runteam/runteam/handoff"
)

// readEdges reads the edges along which agents may send handoffs.
func (r *reader) readEdges() {
	defer func() { r.subject = nil }()
	for i, item := range r.places.main.spec.own("edges").parts() {
		r.subject = func() string { return fmt.Sprintf("edge %d: ", i+1) }
		f := r.fields(item, "edge", nil)
		r.places.edges = append(r.places.edges, f)
		e := handoff.Edge{} // so that indexes still match the file
		if f != nil {
			members{{"from", &e.From}, {"to", &e.To}, {"bidirectional", &e.Bidirectional}, {"delegate", &e.Delegate}, {"files", &e.Files}, {"transfer", &e.Transfer}}.read(f.own)
			if n := f.own("maxClassification"); n != nil {
				e.MaxClassification = new(level(n))
			}
		}
		r.file.Config.Edges = append(r.file.Config.Edges, e)
	}
}
