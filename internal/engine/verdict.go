package engine

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/record"
)

// ErrRejected reports a result that too few judges accept.
var ErrRejected = codes.Condition(codes.Rejected)

// rejectedBy returns the error of a result that no round brought to a quorum.
func rejectedBy(quorum, rounds int) error {
	if rounds == 1 {
		return fmt.Errorf("%w: fewer than %d accept it", ErrRejected, quorum)
	}
	return fmt.Errorf("%w: fewer than %d accept it after %d rounds", ErrRejected, quorum, rounds)
}

// A verdict is what judges say of an answer, as a structured result.
type verdict struct {
	Accepted bool      `json:"accepted"`
	Accepts  int       `json:"accepts"`
	Dissent  []dissent `json:"dissent"`
}

// A dissent is why one judge does not accept an answer.
type dissent struct {
	Judge    string `json:"judge"`
	Critique string `json:"critique"`
}

// noVerdict is the critique of a judge whose result is missing or withheld.
const noVerdict = "(no verdict)"

// countJudges counts the judges who accept. results are what was delivered of the result of each, and
// judges the names of their agents. A judge without a result does not accept.
func countJudges(results []*gate.Sealed, judges []string, quorum int) (agent.Reply, error) {
	v := verdict{Dissent: []dissent{}}
	for k, sealed := range results {
		said := struct {
			Accept   bool
			Critique string
		}{Critique: noVerdict}
		if sealed != nil {
			if raw, ok := sealed.Payload().JSON(); ok {
				if err := json.Unmarshal([]byte(raw), &said); err != nil {
					return agent.Reply{}, err
				}
			}
		}
		if said.Accept {
			v.Accepts++
		} else {
			v.Dissent = append(v.Dissent, dissent{judges[k], said.Critique})
		}
	}
	v.Accepted = v.Accepts >= quorum
	raw, err := json.Marshal(v)
	if err != nil {
		return agent.Reply{}, err
	}
	parsed, err := jsonvalue.Parse(string(raw))
	return agent.Reply{Text: parsed.Canonical(), JSON: parsed}, err
}

// withTask returns a key of the prompt of a judge or a person that no other task has. Each judge makes
// its own call, and each question to a person its own answer, even if another task had the same
// prompt, in this round or for an equal item. So does each child of an attempt.
func withTask(key record.Key, r *request) record.Key {
	if child := record.ChildOf(r.part); child != "" {
		key = sha256.Sum256(append(key[:], child...))
	}
	judges := r.task.Instance != nil && r.task.Instance.Judges
	if !judges && !r.isPerson() {
		return key
	}
	return sha256.Sum256(append(key[:], r.task.ID...))
}
