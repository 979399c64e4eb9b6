package audit

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"time"

	"github.com/runteam/runteam/event"
)

// The kinds of lines.
const (
	opening  = "open"
	decision = "decision"
	closing  = "close"
)

// entry is what a line says, the member "audit". Its digest stands beside it.
type entry struct {
	Seq      int             `json:"seq"` // from 1, in one chain
	Kind     string          `json:"kind"`
	Previous Head            `json:"previous,omitzero"` // the head before this line; of an opening that of the run before
	Beside   Head            `json:"beside,omitzero"`   // digest and number of the other lines between the line before and this one
	Run      string          `json:"run,omitempty"`     // of an opening
	Keyed    bool            `json:"keyed,omitempty"`   // of an opening: the digests of this chain are HMAC
	Time     time.Time       `json:"time,omitzero"`     // of an opening and a closing; a decision has its own
	Handoff  json.RawMessage `json:"handoff,omitempty"` // of a decision: an event.Handoff
	Counts   *counts         `json:"counts,omitempty"`  // of a closing
}

// decisionEntry is the line of one decision.
func decisionEntry(head, beside Head, h *event.Handoff) (entry, error) {
	text, err := json.Marshal(h)
	if bytes.Contains(text, []byte(`\ufffd`)) { // names that are not UTF-8 may have become equal
		if name, twice := duplicate(text); twice {
			return entry{}, fmt.Errorf("%q stands twice in a decision: write names in UTF-8", name)
		}
	}
	return entry{Seq: head.Lines + 1, Kind: decision, Previous: head, Beside: beside, Handoff: text}, err
}

// counts are what the closing line says of the decisions before it. What did
// not pass was held.
type counts struct {
	Decisions int            `json:"decisions"`
	Passed    int            `json:"passed"`
	Held      map[string]int `json:"heldByRule,omitempty"`
}

// passed is the verdict of what may cross.
const passed = "passed"

func (c *counts) add(verdict, rule string) {
	c.Decisions++
	if verdict == passed {
		c.Passed++
		return
	}
	if c.Held == nil {
		c.Held = map[string]int{}
	}
	c.Held[valid(rule)]++
}

func (c *counts) equal(d *counts) bool {
	return c.Decisions == d.Decisions && c.Passed == d.Passed && maps.Equal(c.Held, d.Held)
}

// A line is an object of two members in this order, without a space. Between
// these pieces stand the entry and its digest in hex.
const (
	before  = `{"audit":`
	between = `,"digest":"`
	after   = `"}`
	frame   = len(before) + len(between) + 2*sha256.Size + len(after)
)

// encode returns the line of an entry, with its line feed, and the head after it.
func encode(d digester, e entry) ([]byte, Head, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, Head{}, err
	}
	if n := len(text) + frame; n > MaxLine {
		return nil, Head{}, fmt.Errorf("a decision takes %d bytes, more than the %d of a line", n, MaxLine)
	}
	head := Head{Digest: d.of(e.Previous, text), Lines: e.Seq}
	line := make([]byte, 0, len(text)+frame+1)
	line = append(append(append(line, before...), text...), between...)
	line = append(append(hex.AppendEncode(line, head.Digest[:]), after...), '\n')
	return line, head, nil
}

// A digester computes the digests of a chain. One goroutine uses it at a time.
type digester struct{ hash hash.Hash }

func newDigester(key []byte) digester {
	if len(key) == 0 {
		return digester{hash: sha256.New()}
	}
	return digester{hash: hmac.New(sha256.New, key)}
}

// of is the digest of an entry, whose exact bytes are text: over the version,
// the digest before it and the text, each behind its length.
func (d digester) of(previous Head, text []byte) [sha256.Size]byte {
	return d.over([]byte(Version), previous.Digest[:], text)
}

func (d digester) over(parts ...[]byte) (sum [sha256.Size]byte) {
	d.hash.Reset()
	for _, part := range parts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		d.hash.Write(n[:])
		d.hash.Write(part)
	}
	d.hash.Sum(sum[:0])
	return sum
}
