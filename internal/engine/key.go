package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
)

// keyVersion opens what is hashed, so that another layout has other keys.
const (
	keyVersion     = "runteam/key/1"
	turnKeyVersion = "runteam/turn/1"
)

// keyOf returns the digest of everything that determines an agent's first answer: its
// name, its version, both texts of the prompt, which include the schema, and its tools. It
// covers neither run, time nor address.
func keyOf(agent, version string, p prompt.Prompt) record.Key {
	parts := []string{keyVersion, agent, version, p.System(), p.Text()}
	if tools := p.Tools(); len(tools) > 0 {
		parts = append(parts, jsonOf(tools))
	}
	return digestOf(parts...)
}

// keyOfTurn returns the key of a turn: of the turn before, the messages that the turn adds, and
// what was added as one text, which says what was moved out.
func keyOfTurn(before record.Key, step []prompt.Message, added string) record.Key {
	return digestOf(turnKeyVersion, string(before[:]), jsonOf(step), added)
}

// digestOf returns the digest of texts, with the length of each.
func digestOf(parts ...string) record.Key {
	h := sha256.New()
	for _, part := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		io.WriteString(h, part)
	}
	return record.Key(h.Sum(nil))
}

// jsonOf returns a value of strings as JSON.
func jsonOf(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // it has strings only
	}
	return string(raw)
}

// reuseKeyOf returns the key by which another run finds the answer to a prompt: the
// key of the prompt, the clearance of the caller, and where it was sent. That there is an
// answer tells a caller that the prompt was sent before, so it must be a prompt
// of a caller who may see as much. The operator of an endpoint decides
// what it answers, so answers are not reused across origins. A resumed run and
// a replay use the key alone, since they continue one run.
func reuseKeyOf(key record.Key, accepts label.Classification, origins []string) record.Key {
	h := sha256.New()
	fmt.Fprintf(h, "runteam/reuse/2 %x %v", key, accepts)
	for _, origin := range origins {
		fmt.Fprintf(h, " %q", origin)
	}
	return record.Key(h.Sum(nil))
}

// keyed reports whether prompts need keys: answers are stored, or there are prior ones.
func (r *runScope) keyed() bool { return r.log != nil || r.memo != nil }

// setKeys sets the keys of a prompt of a model call, unless nothing is cached.
func setKeys(x *modelCall, b *brief.Brief, p prompt.Prompt) error {
	r := x.run
	if !r.keyed() {
		return nil
	}
	agent := r.team.Find(x.caps.Agent)
	keyFor := func(version string, p prompt.Prompt) record.Key {
		return withTask(withComputed(withMerged(withFiles(keyOf(x.caps.Agent, version, p), x.sealed, &x.run.contents), x.given.merged(), &x.run.contents), x.task), &x.request)
	}
	x.key = keyFor(agent.AnswerVersion(), p)
	x.core, x.prior = x.key, x.key
	was := *agent
	was.Version = r.memo.Version(agent.Name, agent.Version)
	if before := was.AnswerVersion(); before != agent.AnswerVersion() {
		x.prior = keyFor(before, p)
	}
	if len(b.Memory)+len(b.Messages) == 0 {
		return nil
	}
	lean := *b
	lean.Memory, lean.Messages = nil, nil
	q, _, err := prompt.Build(lean)
	if err == nil {
		x.core = keyFor(agent.AnswerVersion(), q)
	}
	return err
}
