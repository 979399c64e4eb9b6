package specfile

import (
	"fmt"

	"github.com/runteam/runteam/internal/engine"
)

// readMessages reads the messages to members of the team.
func (r *reader) readMessages() {
	defer func() { r.subject = nil }()
	n := r.places.main.spec.own("messages")
	for i, item := range n.parts() {
		r.subject = func() string { return fmt.Sprintf("message %d: ", i+1) }
		f := r.fields(item, "message", nil)
		r.places.messages = append(r.places.messages, f)
		if f == nil {
			r.file.Run.Messages = append(r.file.Run.Messages, engine.Message{}) // so that indexes still match the file
			continue
		}
		m := engine.Message{Text: r.plainText("text", f.own("text"))}
		members{{"from", &m.From}, {"to", &m.To}, {"classification", &m.Classification}, {"ttlMs", &m.TTL}}.read(f.own)
		r.raiseLabel(f.own("text"), m.Classification)
		r.file.Run.Messages = append(r.file.Run.Messages, m)
	}
}
