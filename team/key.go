package team

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/url"

	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
)

// keyVersion opens what is hashed, so that another layout has other keys.
const keyVersion = "runteam/key/1"

// keyOf returns the digest of all that decides on an agent's answer: who it
// is, in which version, and both texts of the prompt, of which the schema is a
// part. Neither run, time nor address is in it.
func keyOf(agent, version string, p prompt.Prompt) record.Key {
	h := sha256.New()
	for _, part := range [...]string{keyVersion, agent, version, p.System(), p.Text()} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return record.Key(h.Sum(nil))
}

// reuseKeyOf returns the key by which another run finds the answer to a prompt: the
// key of the prompt, and where it was sent. The operator of an endpoint decides
// what it answers, so answers are not reused across origins. A resumed run and
// a replay use the key alone, since they continue one run.
func reuseKeyOf(key record.Key, origins []string) record.Key {
	h := sha256.New()
	fmt.Fprintf(h, "runteam/reuse/1 %x", key)
	for _, origin := range origins {
		fmt.Fprintf(h, " %q", origin)
	}
	return record.Key(h.Sum(nil))
}

// reuseKey returns the key by which another run finds the answer of the exchange.
func (x *exchange) reuseKey() record.Key {
	return reuseKeyOf(x.key, x.run.team.origins(x.caps.Agent))
}

// origins returns where the prompts of an agent, or of the coordinator, go. The names
// of its endpoints do not count: one with a variable has the same name for any origin.
func (t *Team) origins(name string) (list []string) {
	m := new(Member)
	if i, ok := t.member(name); ok {
		m = &t.config.Agents[i]
	} else if c := t.config.Coordinator; c != nil {
		m = c.member()
	}
	for _, e := range m.endpoints() {
		list = append(list, originOf(e.base))
	}
	return list
}

// originOf returns the scheme, host and port of a base URL. The port of an endpoint
// on this machine does not count, since it changes from start to start.
func originOf(base string) string {
	u, err := url.Parse(endpoint.Normalize(base))
	if err != nil || u.Host == "" {
		return base
	}
	if DefaultAccepts(base) == label.Secret { // on this machine
		return u.Scheme + "://localhost"
	}
	return u.Scheme + "://" + u.Host
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

// hasFallback reports whether an agent, the coordinator too, has several models.
func (t *Team) hasFallback(name string) bool {
	if i, ok := t.member(name); ok {
		return len(modelsOf(t.config.Agents[i].Agent)) > 1
	}
	c := t.config.Coordinator
	return c != nil && len(modelsOf(c.Agent)) > 1
}

// modelOf returns the model of an agent, as its settings name it.
func (t *Team) modelOf(name string) string {
	model, does := "", Agent(nil)
	if i, ok := t.member(name); ok {
		model, does = t.config.Agents[i].Model, t.config.Agents[i].Agent
	} else if c := t.config.Coordinator; c != nil {
		model, does = c.Model, c.Agent
	}
	if names := modelsOf(does); len(names) > 0 {
		return cmp.Or(model, names[0])
	}
	return model
}
