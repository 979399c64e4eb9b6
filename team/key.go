package team

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/prompt"
)

// keyVersion opens what is hashed, so that another layout has other keys.
const keyVersion = "runteam/key/1"

// keyOf returns the digest of all that decides on an agent's answer: who it
// is, in which version, and both texts of the prompt, of which the schema is a
// part. Neither run, time nor address is in it.
func keyOf(agent, version string, p prompt.Prompt) event.Key {
	h := sha256.New()
	for _, part := range [...]string{keyVersion, agent, version, p.System(), p.Text()} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return event.Key(h.Sum(nil))
}

// keyed reports whether prompts need keys: somebody keeps answers, or has some.
func (r *run) keyed() bool { return r.ledger != nil || r.past != nil }

// identify gives a prompt its keys.
func (x *exchange) identify(b *prompt.Brief, p prompt.Prompt) error {
	if !x.run.keyed() {
		return nil
	}
	version := x.run.team.versionOf(x.caps.Agent)
	x.key = keyOf(x.caps.Agent, version, p)
	if x.core = x.key; len(b.Memory)+len(b.Messages) == 0 {
		return nil
	}
	lean := *b
	lean.Memory, lean.Messages = nil, nil
	q, _, err := prompt.Build(lean)
	if err == nil {
		x.core = keyOf(x.caps.Agent, version, q)
	}
	return err
}

// versionOf returns the version of an agent, the coordinator's too; empty for
// one of which no version is known.
func (t *Team) versionOf(name string) string {
	version, does := "", Agent(nil)
	if i, ok := t.member(name); ok {
		version, does = t.config.Agents[i].Version, t.config.Agents[i].Agent
	} else if c := t.config.Coordinator; c != nil {
		version, does = c.Version, c.Agent
	}
	if told, ok := does.(interface{ Version() string }); ok && version == "" {
		return told.Version()
	}
	return version
}

// modelOf returns the model of an agent, as its settings name it.
func (t *Team) modelOf(name string) string {
	if i, ok := t.member(name); ok {
		return t.config.Agents[i].Model
	} else if c := t.config.Coordinator; c != nil {
		return c.Model
	}
	return ""
}
