package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

var (
	start = time.Date(2026, 5, 4, 12, 0, 0, 0, time.FixedZone("", 3600))
	end   = start.Add(time.Minute)
	key   = []byte("a key that is long enough to try")
)

// decided is a decision; every third one is held.
func decided(i int) event.Handoff {
	h := event.Handoff{
		Session:  "run-1/write/1",
		From:     "reader",
		To:       "writer",
		Task:     "write",
		Source:   gate.Source{Kind: handoff.Dependency, Name: fmt.Sprintf("read <%d> & \u2028 ü", i)},
		Label:    label.Confidential,
		Before:   event.Extent{Outputs: 1, Tokens: 2, Bytes: 8},
		After:    event.Extent{Outputs: 1, Tokens: 2, Bytes: 8, Included: []task.Path{"/score", "*"}},
		Redacted: redact.Counts{"email": 2, "Email": i},
		Time:     start.Add(time.Duration(i) * time.Millisecond),
		Ruling:   event.Ruling{Verdict: gate.Passed, Mode: "full", Rule: "POLICY-DEFAULT", Line: "team.yaml:7"},
	}
	if i%3 == 2 {
		h.Verdict, h.Rule, h.Reason = gate.Withheld, "CLEARANCE", "above the reader"
	}
	return h
}

// list is n decisions, numbered from from.
func list(from, n int) (l []event.Handoff) {
	for i := range n {
		l = append(l, decided(from+i))
	}
	return l
}

// record writes a closed chain of n decisions.
func recordOf(t require.TestingT, o audit.Options, n int) (string, audit.Head) {
	var b strings.Builder
	if o.Time.IsZero() {
		o.Time = start
	}
	c, err := audit.New(&b, o)
	require.NoError(t, err)
	require.NoError(t, c.Append(list(0, n)...))
	head, err := c.Close(end)
	require.NoError(t, err)
	return b.String(), head
}

// verify reads a record that can be read.
func verify(t require.TestingT, text string, o audit.VerifyOptions) audit.Report {
	r, err := audit.Verify(strings.NewReader(text), o)
	require.NoError(t, err)
	return r
}

// Requirement: G45.
func TestUnchangedRecordIsVerified(t *testing.T) {
	t.Parallel()
	before := audit.Head{Digest: [32]byte{1}, Lines: 7}
	for _, k := range [][]byte{nil, key} {
		for _, n := range []int{0, 1, 7} {
			text, head := recordOf(t, audit.Options{Run: "run-1", Key: k, Previous: before}, n)
			want := audit.Report{Status: audit.Verified, Run: "run-1", Runs: 1, Covered: n + 2, Decisions: n, Withheld: n / 3, Head: head, Previous: before, Keyed: k != nil}
			require.Equal(t, want, verify(t, text, audit.VerifyOptions{Key: k, Head: head}))
			want.Status = audit.Consistent
			require.Equal(t, want, verify(t, text, audit.VerifyOptions{Key: k}))
			require.Equal(t, n+2, head.Lines)
			require.Equal(t, n+2, strings.Count(text, "\n"))
		}
	}
}

// Requirement: G45.
func TestLinesHaveDecisionsAndTheClosingLineCounts(t *testing.T) {
	t.Parallel()
	text, _ := recordOf(t, audit.Options{Run: "run-1"}, 3)
	lines := strings.Split(text, "\n")
	var line struct {
		Audit struct {
			Seq     int
			Kind    string
			Handoff event.Handoff
			Counts  map[string]any
			Time    time.Time
		}
	}
	require.NoError(t, json.Unmarshal([]byte(lines[3]), &line))
	require.Equal(t, 4, line.Audit.Seq)
	require.Equal(t, "decision", line.Audit.Kind)
	want := decided(2)
	require.True(t, want.Time.Equal(line.Audit.Handoff.Time))
	line.Audit.Handoff.Time = want.Time
	require.Equal(t, want, line.Audit.Handoff)
	require.NoError(t, json.Unmarshal([]byte(lines[4]), &line))
	require.Equal(t, map[string]any{"decisions": 3.0, "passed": 2.0, "heldByRule": map[string]any{"CLEARANCE": 1.0}}, line.Audit.Counts)
	require.True(t, end.Equal(line.Audit.Time))
}

// Requirement: G45.
func TestHeadWithoutAWriter(t *testing.T) {
	t.Parallel()
	_, want := recordOf(t, audit.Options{Run: "r"}, 4)
	c, err := audit.New(nil, audit.Options{Run: "r", Time: start})
	require.NoError(t, err)
	require.NoError(t, c.Append(list(0, 4)...))
	got, err := c.Close(end)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// Requirement: G45.
func TestCloseAndAppendMayBeCalledAgain(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	c, err := audit.New(&b, audit.Options{})
	require.NoError(t, err)
	require.NoError(t, c.Append())
	require.NoError(t, c.Append(decided(0)))
	head, err := c.Close(end)
	require.NoError(t, err)
	size := b.Len()
	again, err := c.Close(end.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, head, again)
	require.Equal(t, head, c.Head())
	require.ErrorIs(t, c.Append(decided(1)), audit.ErrClosed)
	require.Equal(t, size, b.Len())
}

// TestAnyDecisionsAreVerified records names of any bytes, valid or not.
//
// Requirement: G45.
func TestAnyDecisionsAreVerified(t *testing.T) {
	t.Parallel()
	name := rapid.Custom(func(t *rapid.T) string {
		if rapid.Bool().Draw(t, "text") {
			return rapid.String().Draw(t, "name")
		}
		return string(rapid.SliceOfN(rapid.SampledFrom([]byte("ab\xff\xc3\xbc<\x00\xe2\x80\xa8")), 0, 4).Draw(t, "bytes"))
	})
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		c, err := audit.New(&b, audit.Options{Run: name.Draw(t, "run")})
		require.NoError(t, err)
		held := 0
		for range rapid.IntRange(0, 5).Draw(t, "n") {
			h := event.Handoff{From: name.Draw(t, "from"), Redacted: redact.Counts{redact.Kind(name.Draw(t, "kind")): 1}, Ruling: event.Ruling{Rule: handoff.Rule(name.Draw(t, "rule")), Verdict: gate.Verdict(rapid.IntRange(0, 3).Draw(t, "verdict"))}}
			if h.Verdict != gate.Passed {
				held++
			}
			require.NoError(t, c.Append(h))
		}
		head, err := c.Close(end)
		require.NoError(t, err)
		got := verify(t, b.String(), audit.VerifyOptions{Head: head})
		require.Equal(t, audit.Verified, got.Status, "%+v", got)
		require.Equal(t, held, got.Withheld)
	})
}

// Requirement: G45.
func TestPreviousHeadNeedsItsLines(t *testing.T) {
	t.Parallel()
	for _, h := range []audit.Head{{Digest: [32]byte{1}}, {Lines: -1}} {
		_, err := audit.New(nil, audit.Options{Previous: h})
		require.ErrorContains(t, err, "give one that a chain returned")
	}
}

// Requirement: G45.
func TestShortKeyIsRefused(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	_, err := audit.New(&b, audit.Options{Key: []byte("123456789012345")})
	require.ErrorContains(t, err, "the key has length 15; use at least 16 bytes")
	require.Zero(t, b.Len())
}

// disk fails on request, and records its calls.
type disk struct {
	bytes.Buffer
	writes, syncs int
	room          int // bytes until a write fails; negative is no limit
	short         bool
	bad           error // of Sync
}

var errFull = errors.New("no space left")

func (d *disk) Write(p []byte) (int, error) {
	d.writes++
	if d.room < 0 || d.Len()+len(p) <= d.room {
		return d.Buffer.Write(p)
	}
	n, _ := d.Buffer.Write(p[:d.room-d.Len()])
	if d.short {
		return n, nil
	}
	return n, errFull
}

func (d *disk) Sync() error {
	d.syncs++
	return d.bad
}

// Requirement: G45.
func TestEachAppendIsOneWriteMadeDurable(t *testing.T) {
	t.Parallel()
	d := &disk{room: -1}
	c, err := audit.New(d, audit.Options{})
	require.NoError(t, err)
	require.Equal(t, []int{1, 1}, []int{d.writes, d.syncs})
	require.NoError(t, c.Append(list(0, 5)...))
	require.Equal(t, []int{2, 2}, []int{d.writes, d.syncs})
	_, err = c.Close(end)
	require.NoError(t, err)
	require.Equal(t, []int{3, 3}, []int{d.writes, d.syncs})
}

// TestAfterAFailedWriteNothingIsWritten lets a write fail after each number of
// bytes: the file is then open, never closed, and has no more lines.
//
// Requirement: G45.
func TestAfterAFailedWriteNothingIsWritten(t *testing.T) {
	t.Parallel()
	whole, _ := recordOf(t, audit.Options{}, 2)
	for _, short := range []bool{false, true} {
		want := errFull
		if short {
			want = io.ErrShortWrite
		}
		step := 7
		if slowtest.Enabled() {
			step = 1
		}
		for room := 0; room < len(whole); room += step {
			d := &disk{room: room, short: short}
			c, err := audit.New(d, audit.Options{Time: start})
			if err == nil {
				err = errors.Join(c.Append(decided(0)), c.Append(decided(1)))
				head, closing := c.Close(end)
				require.ErrorIs(t, closing, want)
				d.room = -1 // there is room again
				later := c.Append(decided(9))
				require.ErrorIs(t, later, want)
				_, again := c.Close(end)
				require.Equal(t, later, again)
				require.Equal(t, head, c.Head())
				if err == nil {
					err = closing
				}
				require.True(t, strings.HasPrefix(whole, d.String()))
				require.Equal(t, room, d.Len())
			}
			require.ErrorIs(t, err, want)
			require.Equal(t, audit.Open, verify(t, d.String(), audit.VerifyOptions{}).Status, "%d", room)
		}
	}
}

// volatile is a writer that panics on request.
type volatile struct{ panics bool }

func (v *volatile) Write(p []byte) (int, error) {
	if v.panics {
		panic("no")
	}
	return len(p), nil
}

// Requirement: G45.
func TestWriterThatPanicsBreaksTheChain(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(c *audit.Chain){
		"append": func(c *audit.Chain) { _ = c.Append(decided(0)) },
		"close":  func(c *audit.Chain) { _, _ = c.Close(end) },
	} {
		w := &volatile{}
		c, err := audit.New(w, audit.Options{})
		require.NoError(t, err)
		head := c.Head()
		w.panics = true
		require.Panics(t, func() { write(c) })
		w.panics = false
		require.ErrorContains(t, c.Append(decided(1)), "was not finished", name)
		got, err := c.Close(end)
		require.ErrorContains(t, err, "was not finished", name)
		require.Equal(t, head, got)
	}
}

// Requirement: G45.
func TestFailedSyncBreaksTheChain(t *testing.T) {
	t.Parallel()
	d := &disk{room: -1, bad: errFull}
	_, err := audit.New(d, audit.Options{})
	require.ErrorIs(t, err, errFull)
	d = &disk{room: -1}
	c, err := audit.New(d, audit.Options{})
	require.NoError(t, err)
	head := c.Head()
	d.bad = errFull
	require.ErrorIs(t, c.Append(decided(0)), errFull)
	d.bad = nil
	size := d.Len()
	require.ErrorIs(t, c.Append(decided(1)), errFull)
	require.Equal(t, size, d.Len())
	require.Equal(t, head, c.Head(), "what may not be durable does not count")
}

// Requirement: G45.
func TestDecisionThatCannotBeWrittenBreaksTheChain(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]event.Handoff{
		"a line too long":         {Ruling: event.Ruling{Rule: handoff.Rule(strings.Repeat("x", record.MaxLine))}},
		"names that become equal": {Redacted: redact.Counts{"\xff": 1, "\xfe": 1}},
		"no such time":            {Time: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		if slowtest.RaceDetector && len(bad.Ruling.Rule) > record.MaxLine/2 {
			continue // it would take 9 s, all in one goroutine
		}
		var b bytes.Buffer
		c, err := audit.New(&b, audit.Options{})
		require.NoError(t, err)
		size := b.Len()
		err = c.Append(decided(0), bad)
		require.ErrorContains(t, err, "record decisions: ", name)
		require.Equal(t, err, c.Append(decided(1)))
		require.Equal(t, size, b.Len(), "none of them is written")
	}
	never := time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	_, err := audit.New(nil, audit.Options{Time: never})
	require.ErrorContains(t, err, "open the record of decisions: ")
	c, err := audit.New(nil, audit.Options{})
	require.NoError(t, err)
	_, err = c.Close(never)
	require.ErrorContains(t, err, "close the record of decisions: ")
	require.Equal(t, err, c.Append(decided(0)))
}

// Requirement: G45.
func TestConcurrentAppends(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	require.NoError(t, err)
	defer file.Close()
	c, err := audit.New(file, audit.Options{Key: key})
	require.NoError(t, err)
	const writers, each = 8, 5
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				if err := c.Append(list(w*each+i, 3)...); err != nil {
					t.Error(err)
				}
				_ = c.Head()
			}
		})
	}
	group.Wait()
	head, err := c.Close(end)
	require.NoError(t, err)
	text, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	got := verify(t, string(text), audit.VerifyOptions{Key: key, Head: head})
	require.Equal(t, audit.Verified, got.Status)
	require.Equal(t, 3*writers*each, got.Decisions)
	require.Equal(t, writers*each, got.Withheld)
}

func TestHeadText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var want, got audit.Head
		copy(want.Digest[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "digest"))
		want.Lines = rapid.IntRange(1, 1<<40).Draw(t, "lines")
		text, err := want.MarshalText()
		require.NoError(t, err)
		require.NoError(t, got.UnmarshalText(text))
		require.Equal(t, want, got)
	})
	digest := strings.Repeat("ab", 32)
	for _, text := range []string{"x", digest, digest + ":", digest + ":0", digest + ":-1", digest + ":01", digest + ":+1", digest + ":1 ", ":1",
		strings.ToUpper(digest) + ":1", digest + "00:1", digest[2:] + ":1", digest + ":1:1", digest + ":99999999999999999999"} {
		got := audit.Head{Lines: 3}
		require.ErrorContains(t, got.UnmarshalText([]byte(text)), "is no head", "%q", text)
		require.Zero(t, got)
	}
	got := audit.Head{Lines: 3}
	require.NoError(t, got.UnmarshalText(nil))
	require.Zero(t, got)
	require.Empty(t, got.String())
}
