package journals

import (
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
)

// A StoredMessage is a message as the user of the run may read it.
type StoredMessage struct {
	Text       string                // the text, or why it is withheld
	Structured string                // canonical JSON; empty for none
	Label      *label.Classification // nil if it is not known
}

// Message returns a message as the user of the run may read it now. The text is withheld above the user's clearance,
// and if the policy does not let the user have all of it, it cannot be decrypted, has expired or was altered.
func (k *StoredRun) Message(s *record.SentMessage) StoredMessage {
	if s.Message == nil {
		return StoredMessage{Text: "[withheld: secret]"}
	}
	level := s.Message.Classification
	withheld := func(why string) StoredMessage { return StoredMessage{"[withheld: " + why + "]", "", &level} }
	e, err := s.Message.Envelope()
	switch {
	case !s.Shown:
		return withheld(level.String())
	case err != nil || e.Genuine() != nil:
		return withheld("it is not what was stored")
	case !e.ExpiresAt().IsZero() && !k.Now.Before(e.ExpiresAt()):
		return withheld("expired")
	}
	return StoredMessage{s.Message.Text, string(s.Message.JSON), &level}
}
