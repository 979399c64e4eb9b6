package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"strconv"
	"time"

	"github.com/runteam/runteam/internal/record"
)

// The kinds of lines.
const (
	opening  = "open"
	decision = "decision"
	closing  = "close"
)

// An entry is the member "audit" of a line. The member after it is its digest.
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

// counts are the counts of decisions in the closing line.
type counts struct {
	Decisions int            `json:"decisions"`
	Passed    int            `json:"passed"`
	Withheld  map[string]int `json:"heldByRule,omitempty"`
}

// passed is the verdict of context that is delivered.
const passed = "passed"

func (c *counts) add(verdict, rule string) {
	c.Decisions++
	if verdict == passed {
		c.Passed++
		return
	}
	if c.Withheld == nil {
		c.Withheld = map[string]int{}
	}
	c.Withheld[valid(rule)]++
}

func (c *counts) equal(d *counts) bool {
	return c.Decisions == d.Decisions && c.Passed == d.Passed && maps.Equal(c.Withheld, d.Withheld)
}

// A line is an object of two members in this order, without a space: the entry and its
// digest in hex, between these pieces.
const (
	before  = `{"audit":`
	between = `,"digest":"`
	after   = `"}`
	frame   = len(before) + len(between) + 2*sha256.Size + len(after)
)

// encode returns the line of an entry with its line feed, and the head after it.
func (d *digester) encode(e entry) ([]byte, Head, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, Head{}, err
	}
	return d.end(append([]byte(before), text...), 0, e.Previous, e.Seq)
}

// decision appends the line of a decision to b, in the bytes that encode writes.
func (d *digester) decision(b []byte, previous, beside Head, handoff []byte) ([]byte, Head, error) {
	from := len(b)
	b = append(b, before+`{"seq":`...)
	b = strconv.AppendInt(b, int64(previous.Lines+1), 10)
	b = previous.append(append(b, `,"kind":"`+decision+`","previous":"`...))
	if beside != (Head{}) {
		b = beside.append(append(b, `","beside":"`...))
	}
	b = append(append(append(b, `","handoff":`...), handoff...), '}')
	return d.end(b, from, previous, previous.Lines+1)
}

// end appends the digest to a line that begins at from, and returns the head after it.
func (d *digester) end(b []byte, from int, previous Head, seq int) ([]byte, Head, error) {
	text := b[from+len(before):]
	if n := len(text) + frame; n > record.MaxLine {
		return nil, Head{}, fmt.Errorf("a decision takes %d bytes, more than the %d of a line", n, record.MaxLine)
	}
	head := Head{Digest: d.of(previous, text), Lines: seq}
	b = hex.AppendEncode(append(b, between...), head.Digest[:])
	return append(append(b, after...), '\n'), head, nil
}

// A digester computes the digests of a chain. It is not safe for concurrent use.
type digester struct {
	hash hash.Hash
	size [8]byte           // scratch
	sum  [sha256.Size]byte // scratch
}

func newDigester(key []byte) *digester {
	if len(key) == 0 {
		return &digester{hash: sha256.New()}
	}
	return &digester{hash: hmac.New(sha256.New, key)}
}

// of returns the digest of an entry with this text: over the version, the digest before it
// and the text.
func (d *digester) of(previous Head, text []byte) [sha256.Size]byte {
	return d.over(version, previous.Digest[:], text)
}

// version is [Version].
var version = []byte(Version)

// over returns the digest of parts, each behind its length.
func (d *digester) over(parts ...[]byte) [sha256.Size]byte {
	d.hash.Reset()
	for _, part := range parts {
		binary.BigEndian.PutUint64(d.size[:], uint64(len(part)))
		d.hash.Write(d.size[:])
		d.hash.Write(part)
	}
	d.hash.Sum(d.sum[:0])
	return d.sum
}
