package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/prompt"
)

// keyVersion opens what is hashed, so that another layout has other keys.
const keyVersion = "runteam/key/1"

// keyOf returns the digest of everything that determines an agent's answer: its
// name, its version, and both texts of the prompt, which include the schema. It
// covers neither run, time nor address.
func keyOf(agent, version string, p prompt.Prompt) record.Key {
	h, messages := sha256.New(), p.Messages()
	for _, part := range [...]string{keyVersion, agent, version, p.System(), messages[0].Text} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	if tools, later := p.Tools(), messages[1:]; len(tools)+len(later) > 0 {
		for _, list := range []any{tools, later} {
			raw, err := json.Marshal(list)
			if err != nil {
				panic(err) // they are strings
			}
			var size [8]byte
			binary.BigEndian.PutUint64(size[:], uint64(len(raw)))
			h.Write(size[:])
			h.Write(raw)
		}
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

// reuseKey returns the key by which another run finds the answer of the model call.
func (x answerCache) reuseKey() record.Key {
	return reuseKeyOf(x.key, x.run.team.Find(x.caps.Agent).Origins())
}

// keyed reports whether prompts need keys: answers are stored, or there are prior ones.
func (r *runScope) keyed() bool { return r.ledger != nil || r.priorRun != nil }

// keysOf returns the key of a prompt to an agent, and that of the same prompt without
// messages and memory. Both are zero if nothing is cached.
func (r *runScope) keysOf(agent string, b *brief.Brief, p prompt.Prompt) (key, core record.Key, err error) {
	if !r.keyed() {
		return key, core, nil
	}
	version := r.team.Find(agent).AnswerVersion()
	key = keyOf(agent, version, p)
	if len(b.Memory)+len(b.Messages) == 0 {
		return key, key, nil
	}
	lean := *b
	lean.Memory, lean.Messages = nil, nil
	q, _, err := prompt.Build(lean)
	if err != nil {
		return key, key, err
	}
	return key, keyOf(agent, version, q), nil
}
