package audit_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/runteam/runteam/internal/slowtest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
)

// broken holds that a text is broken at a line, with and without the head.
func broken(t *testing.T, text string, o audit.VerifyOptions, line int) {
	t.Helper()
	brokenIn(t, text, o, line, line)
}

// brokenIn holds that a text is broken at a line from a first to a last one.
func brokenIn(t *testing.T, text string, o audit.VerifyOptions, first, last int) {
	t.Helper()
	for _, head := range []audit.Head{{}, o.Head} {
		got := verify(t, text, audit.VerifyOptions{Key: o.Key, Head: head})
		require.Equal(t, audit.Broken, got.Status, "%+v", got)
		require.True(t, first <= got.Line && got.Line <= last, "not in %d to %d: %+v", first, last, got)
		require.Less(t, got.Covered, last)
		require.NotEmpty(t, got.Why)
	}
}

// around returns the range of the line at an index, as numbers of lines: from the
// one after the last line of a record before it, to the next line of a record at or
// after the index from.
func around(lines []string, at, from int) (first, last int) {
	for first = at; first > 0 && !strings.HasPrefix(lines[first-1], ours); first-- {
	}
	for last = from; last < len(lines)-1 && !strings.HasPrefix(lines[last], ours); last++ {
	}
	return first + 1, max(at, last) + 1
}

// ours is how a line of a record begins.
const ours = `{"audit":`

// TestEveryAlterationIsFound alters a record of five lines in each place.
//
// Requirement: G45.
func TestEveryAlterationIsFound(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	for name, k := range map[string][]byte{"SHA-256": nil, "HMAC": key} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, head := recordOf(t, audit.Options{Run: "run-1", Key: k}, 3)
			o := audit.VerifyOptions{Key: k, Head: head}
			lines := slices.Collect(strings.Lines(text))
			t.Run("edit", func(t *testing.T) { everyEdit(t, lines, o) })
			t.Run("insert", func(t *testing.T) { everyInsertion(t, lines, o) })
			t.Run("remove", func(t *testing.T) { everyRemoval(t, lines, o) })
			t.Run("reorder", func(t *testing.T) { everyOrder(t, lines, o) })
			t.Run("truncate", func(t *testing.T) { everyTruncation(t, text, o) })
		})
	}
}

// isTried reports whether the alteration at byte i of n is one of those that the fast form tries: the first ones, the
// last ones, and one of seven between them, so that each of the five ways to change a byte comes up.
func isTried(i, n int) bool { return slowtest.Enabled() || i < 20 || i >= n-3 || i%7 == 0 }

// everyEdit changes each byte. A line that is ours no longer is missed by the one after it.
func everyEdit(t *testing.T, lines []string, o audit.VerifyOptions) {
	for at, line := range lines {
		for i := range line {
			if !isTried(i, len(line)) {
				continue
			}
			flips := []byte{1, 0x20, 0x80, line[i] ^ '\n', line[i] ^ ' '}
			flip := flips[i%len(flips)]
			if flip == 0 {
				flip = 2
			}
			edited := []byte(line)
			edited[i] ^= flip
			text := strings.Join(lines[:at], "") + string(edited) + strings.Join(lines[at+1:], "")
			got := verify(t, text, audit.VerifyOptions{Key: o.Key})
			if got.Status == audit.Open {
				require.Equal(t, len(lines)-1, at, "%+v", got)
			} else {
				require.Equal(t, audit.Broken, got.Status)
				first, last := around(lines, at, at+1)
				require.True(t, first <= got.Line && got.Line <= last, "line %d byte %d, not in %d to %d: %+v", at+1, i, first, last, got)
			}
			require.Equal(t, audit.Broken, verify(t, text, o).Status)
		}
		for _, edit := range [][2]string{{`"verdict":"held"`, `"verdict":"passed"`}, {`"verdict":"passed"`, `"verdict":"held"`}, {`"seq":`, `"seq":1`}, {`:00`, `:01`}} {
			if edited := strings.Replace(line, edit[0], edit[1], 1); edited != line {
				first, _ := around(lines, at, at)
				if strings.HasPrefix(line, ours) {
					first = at + 1
				}
				brokenIn(t, strings.Join(lines[:at], "")+edited+strings.Join(lines[at+1:], ""), o, first, at+1)
			}
		}
	}
}

// everyInsertion puts each line, and one of another chain with the same beginning, everywhere.
func everyInsertion(t *testing.T, lines []string, o audit.VerifyOptions) {
	for at := range len(lines) + 1 {
		for from, line := range lines {
			line, want := line, at+1
			if from == at { // the first of two equal lines has its place
				want++
			}
			broken(t, strings.Join(slices.Insert(slices.Clone(lines), at, line), ""), o, want)
		}
		if at == 0 || at == len(lines) {
			continue
		}
		var b strings.Builder
		c, err := audit.New(&b, audit.Options{Run: "run-1", Key: o.Key, Time: start})
		require.NoError(t, err)
		require.NoError(t, c.Append(list(0, at-1)...))
		require.NoError(t, c.Append(decided(70)))
		forged := slices.Collect(strings.Lines(b.String()))
		require.Equal(t, lines[:at], forged[:at])
		broken(t, strings.Join(slices.Insert(slices.Clone(lines), at, forged[at]), ""), o, at+2)
	}
}

func everyRemoval(t *testing.T, lines []string, o audit.VerifyOptions) {
	for from := range lines {
		for to := from + 1; to < len(lines); to++ { // what is cut off at the end is truncation
			broken(t, strings.Join(slices.Delete(slices.Clone(lines), from, to), ""), o, from+1)
		}
	}
}

func everyOrder(t *testing.T, lines []string, o audit.VerifyOptions) {
	for i := range lines {
		for j := range i {
			swapped := slices.Clone(lines)
			swapped[i], swapped[j] = swapped[j], swapped[i]
			broken(t, strings.Join(swapped, ""), o, j+1)
		}
	}
}

// everyTruncation cuts after each byte. Without the head that is open: so does
// a run end that is interrupted.
func everyTruncation(t *testing.T, text string, o audit.VerifyOptions) {
	for n := range len(text) {
		if n > 100 && (n < len(text)-900 || !slowtest.Enabled()) && n%7 != 0 && n < len(text)-3 && text[n-1] != '\n' {
			continue // each place matters in the first and the last lines
		}
		got := verify(t, text[:n], audit.VerifyOptions{Key: o.Key})
		require.Equal(t, audit.Open, got.Status, "%+v", got)
		require.NotEmpty(t, got.Why)
		whole := strings.Count(text[:n], "\n")
		require.Equal(t, strings.Count(own(text[:n]), "\n"), got.Head.Lines)
		require.LessOrEqual(t, got.Covered, whole)
		if n > 0 && text[n-1] != '\n' {
			require.Equal(t, whole+1, got.Line)
			require.Contains(t, got.Why, "interrupted")
		}
		require.Equal(t, audit.Broken, verify(t, text[:n], o).Status)
		if n > 0 && text[n-1] == '\n' && got.Head.Lines > 0 {
			require.Equal(t, audit.Open, verify(t, text[:n], audit.VerifyOptions{Key: o.Key, Head: got.Head}).Status, "it has no end")
		}
	}
}

// TestOnlyEqualBytesAreVerified alters a record at random.
//
// Requirement: G45.
func TestOnlyEqualBytesAreVerified(t *testing.T) {
	t.Parallel()
	text, head := among(t, audit.Options{Run: "run-1"}, 5)
	pieces := rapid.OneOf(rapid.StringN(0, 5, -1), rapid.SampledFrom(slices.Collect(strings.Lines(text))), rapid.SampledFrom([]string{"\n", " ", "\r\n", "{}\n", `"`, `"audit":1,`, "\x00", "0"}))
	rapid.Check(t, func(t *rapid.T) {
		altered := text
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			at := rapid.IntRange(0, len(altered)).Draw(t, "at")
			cut := rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, len(altered))).Draw(t, "cut")
			altered = altered[:at] + pieces.Draw(t, "piece") + altered[min(len(altered), at+cut):]
		}
		onlyEqual(t, text, head, altered)
	})
}

// onlyEqual holds that a text is verified if it is the one that was written,
// and otherwise not.
func onlyEqual(t require.TestingT, text string, head audit.Head, altered string) {
	got, err := audit.Verify(strings.NewReader(altered), audit.VerifyOptions{Head: head})
	require.NoError(t, err)
	if got.Status == audit.Verified {
		require.Equal(t, text, altered)
	}
	free, err := audit.Verify(strings.NewReader(altered), audit.VerifyOptions{})
	require.NoError(t, err)
	require.NotEqual(t, audit.Verified, free.Status, "without a head")
	if free.Status == audit.Consistent {
		again, err := audit.Verify(strings.NewReader(altered), audit.VerifyOptions{Head: free.Head})
		require.NoError(t, err)
		require.Equal(t, audit.Verified, again.Status, "by its own head")
	}
}

// own returns the whole lines of a record in a file with others.
func own(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, ours) && strings.HasSuffix(line, "\n") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// Requirement: G45.
func TestRewrittenRecordMissesTheHeadOrTheKey(t *testing.T) {
	t.Parallel()
	_, head := recordOf(t, audit.Options{}, 3)
	forged, other := recordOf(t, audit.Options{}, 2)
	require.Equal(t, audit.Consistent, verify(t, forged, audit.VerifyOptions{}).Status)
	require.Equal(t, audit.Verified, verify(t, forged, audit.VerifyOptions{Head: other}).Status)
	got := verify(t, forged, audit.VerifyOptions{Head: head})
	require.Equal(t, audit.Broken, got.Status)
	require.Equal(t, 4, got.Line)
	require.Contains(t, got.Why, "does not end with the given head")
	keyed, _ := recordOf(t, audit.Options{Key: key}, 2)
	require.True(t, verify(t, keyed, audit.VerifyOptions{}).Keyed)
	for _, tt := range []struct {
		text string
		key  []byte
		why  string
	}{
		{forged, key, "it was written without a key, and one was given"},
		{keyed, nil, "it was written with a key, and none was given"},
		{keyed, []byte("another key of sufficient length"), "written with another key"},
		{strings.Replace(keyed, `"keyed":true,`, "", 1), nil, "it was altered"},
		{strings.Replace(keyed, `"keyed":true,`, "", 1), key, "without a key"},
	} {
		got := verify(t, tt.text, audit.VerifyOptions{Key: tt.key})
		require.Equal(t, audit.Broken, got.Status)
		require.Equal(t, 1, got.Line)
		require.Contains(t, got.Why, tt.why)
	}
}

// Requirement: G45.
func TestFileOfSeveralProcessesIsVerified(t *testing.T) {
	t.Parallel()
	for _, k := range [][]byte{nil, key} {
		first, head1 := recordOf(t, audit.Options{Run: "one", Key: k}, 3)
		second, head2 := recordOf(t, audit.Options{Run: "two", Key: k, Previous: head1}, 4)
		got := verify(t, first+second, audit.VerifyOptions{Key: k, Head: head2})
		require.Equal(t, audit.Report{Status: audit.Verified, Run: "two", Runs: 2, Covered: 11, Decisions: 7, Withheld: 2, Head: head2, Keyed: k != nil}, got)
		require.Equal(t, audit.Consistent, verify(t, first+second, audit.VerifyOptions{Key: k}).Status)

		got = verify(t, second, audit.VerifyOptions{Key: k, Head: head2})
		require.Equal(t, audit.Verified, got.Status, "from where it begins")
		require.Equal(t, head1, got.Previous, "which it says")

		got = verify(t, first+second, audit.VerifyOptions{Key: k, Head: head1})
		require.Equal(t, audit.Broken, got.Status)
		require.Contains(t, got.Why, "the given head is that of line 5: lines were added after it")

		stranger, _ := recordOf(t, audit.Options{Run: "two", Key: k}, 4)
		got = verify(t, first+stranger, audit.VerifyOptions{Key: k})
		require.Equal(t, audit.Broken, got.Status)
		require.Equal(t, 6, got.Line)
		require.Contains(t, got.Why, "does not continue")
		got = verify(t, second+first, audit.VerifyOptions{Key: k})
		require.Equal(t, audit.Broken, got.Status)
	}
}

// Requirement: G45.
func TestRunWithoutAnEndStaysOpen(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	c, err := audit.New(&b, audit.Options{Run: "one", Time: start})
	require.NoError(t, err)
	require.NoError(t, c.Append(list(0, 2)...))
	got := verify(t, b.String(), audit.VerifyOptions{Head: c.Head()})
	require.Equal(t, audit.Open, got.Status)
	require.Equal(t, 3, got.Line)
	require.Contains(t, got.Why, "the closing line is missing")
	second, head := recordOf(t, audit.Options{Run: "two", Previous: c.Head()}, 2)
	got = verify(t, b.String()+second, audit.VerifyOptions{Head: head})
	require.Equal(t, audit.Open, got.Status)
	require.Equal(t, 4, got.Line)
	require.Contains(t, got.Why, "the chain before it has no closing line")
	require.Equal(t, 4, got.Decisions)
	got = verify(t, b.String()+second[1:], audit.VerifyOptions{})
	require.Equal(t, audit.Broken, got.Status)
}

// Requirement: G45.
func TestEmptyFileIsNotVerified(t *testing.T) {
	t.Parallel()
	_, head := recordOf(t, audit.Options{}, 0)
	for _, text := range []string{"", "{}\n", `{"event":1}` + "\n"} {
		got := verify(t, text, audit.VerifyOptions{})
		require.Equal(t, audit.Report{Status: audit.Open, Why: "there is no record of decisions in it"}, got)
		require.Equal(t, audit.Broken, verify(t, text, audit.VerifyOptions{Head: head}).Status)
	}
}

// sealed is a line in a form that the package never writes, with the digest that it
// needs: this is the form that is documented.
func sealed(previous [32]byte, text string) (string, [32]byte) {
	h := sha256.New()
	for _, part := range []string{"runteam/audit/1", string(previous[:]), text} {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part)))
		_, _ = io.WriteString(h, part)
	}
	sum := [32]byte(h.Sum(nil))
	return fmt.Sprintf(`{"audit":%s,"digest":"%x"}`, text, sum), sum
}

// TestOnlyTheWrittenFormIsRead offers lines whose digest is right.
//
// Requirement: G45.
func TestOnlyTheWrittenFormIsRead(t *testing.T) {
	t.Parallel()
	open, sum := sealed([32]byte{}, `{"seq":1,"kind":"open"}`)
	previous := fmt.Sprintf(`"previous":"%x:1"`, sum)
	const h = `{"verdict":"passed","governanceRuleId":"R"}`
	fine := `{"seq":2,"kind":"decision",` + previous + `,"handoff":` + h + `}`
	const form = "does not have the form"
	tests := []struct{ name, entry, why string }{
		{"as it is written", fine, ""},
		{"a space", strings.Replace(fine, ":2", ": 2", 1), form},
		{"a space in the decision", strings.Replace(fine, `"R"`, ` "R"`, 1), form},
		{"another order", `{"kind":"decision","seq":2,` + previous + `,"handoff":` + h + `}`, form},
		{"a number otherwise", strings.Replace(fine, `"seq":2`, `"seq":2.0`, 1), form},
		{"a name twice", strings.Replace(fine, `"seq":2`, `"seq":3,"seq":2`, 1), form},
		{"a name in capitals", strings.Replace(fine, `"seq"`, `"SEQ"`, 1), form},
		{"a name that is not known", strings.Replace(fine, `"seq":2`, `"seq":2,"x":1`, 1), form},
		{"an escape", strings.Replace(fine, `"decision"`, `"\u0064ecision"`, 1), form},
		{"a raw sign that is escaped", strings.Replace(fine, `"R"`, `"<"`, 1), form},
		{"bytes that are no text", strings.Replace(fine, `"R"`, "\"\xff\"", 1), form},
		{"an object after it", fine + `{}`, form},
		{"a decision twice in one line", fine + `,"audit":` + fine, form},
		{"no object", `[]`, form},
		{"null", `null`, form},
		{"no decision", `{"seq":2,"kind":"decision",` + previous + `}`, form},
		{"a decision with counts", strings.Replace(fine, `"handoff"`, `"counts":{},"handoff"`, 1), form},
		{"a kind that does not exist", strings.Replace(fine, `"decision"`, `"remark"`, 1), form},
		{"a verdict twice", strings.Replace(fine, `{"verdict":"passed"`, `{"verdict":"held","verdict":"passed"`, 1), `"verdict" occurs twice`},
		{"a verdict twice, escaped", strings.Replace(fine, `{"verdict":"passed"`, `{"v\u0065rdict":"held","verdict":"passed"`, 1), `"verdict" occurs twice`},
		{"a name twice, deep down", strings.Replace(fine, `"R"`, `"R","x":[[],{"a":[1,{"b":{},"c":2,"b":{}}]}]`, 1), `"b" occurs twice`},
		{"equal names apart", strings.Replace(fine, `"R"`, `"R","x":[{"a":"a"},{"a":{"a":["a","a"]}}]`, 1), ""},
		{"no verdict", strings.Replace(fine, `"verdict"`, `"Verdict"`, 1), "no verdict"},
		{"a verdict that is no word", strings.Replace(fine, `"passed"`, `1`, 1), "no verdict"},
		{"a decision that is no object", strings.Replace(fine, h, `[]`, 1), "no verdict"},
		{"a decision that is null", strings.Replace(fine, h, `null`, 1), "no verdict"},
		{"a number too high", strings.Replace(fine, `"seq":2`, `"seq":3`, 1), "does not follow line 1"},
		{"a head too long", strings.Replace(fine, `:1"`, `:2"`, 1), "does not follow line 1"},
		{"a second opening line", `{"seq":1,"kind":"open"}`, "does not continue the one before it"},
		{"an opening line in the middle", `{"seq":2,"kind":"open",` + previous + `}`, form},
		{"an opening line that says it has a key", `{"seq":1,"kind":"open",` + previous + `,"keyed":true}`, "written with a key"},
		{"a closing line", `{"seq":2,"kind":"close",` + previous + `,"counts":{"decisions":0,"passed":0}}`, ""},
		{"a decision with a run", strings.Replace(fine, `"handoff"`, `"run":"r","handoff"`, 1), form},
		{"a decision with a key", strings.Replace(fine, `"handoff"`, `"keyed":true,"handoff"`, 1), form},
		{"a decision with a second time", strings.Replace(fine, `"handoff"`, `"time":"2026-01-01T00:00:00Z","handoff"`, 1), form},
		{"a closing line with a run", `{"seq":2,"kind":"close",` + previous + `,"run":"r","counts":{"decisions":0,"passed":0}}`, form},
		{"a closing line with a decision", `{"seq":2,"kind":"close",` + previous + `,"handoff":` + h + `,"counts":{"decisions":0,"passed":0}}`, form},
		{"a closing line without counts", `{"seq":2,"kind":"close",` + previous + `}`, form},
		{"a closing line that counts one", `{"seq":2,"kind":"close",` + previous + `,"counts":{"decisions":1,"passed":1}}`, "its counts are not"},
		{"a closing line that passes one", `{"seq":2,"kind":"close",` + previous + `,"counts":{"decisions":0,"passed":1}}`, "its counts are not"},
		{"a closing line that holds one", `{"seq":2,"kind":"close",` + previous + `,"counts":{"decisions":0,"passed":0,"heldByRule":{"R":1}}}`, "its counts are not"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := sum
			if !strings.Contains(tt.entry, "previous") {
				before = [32]byte{}
			}
			line, _ := sealed(before, tt.entry)
			got := verify(t, open+"\n"+line+"\n", audit.VerifyOptions{})
			if tt.why == "" {
				require.NotEqual(t, audit.Broken, got.Status, "%+v", got)
				return
			}
			require.Equal(t, audit.Broken, got.Status, "%+v", got)
			require.Equal(t, 2, got.Line)
			require.Contains(t, got.Why, tt.why)
		})
	}
}

// TestNothingFollowsTheClosingLine continues a chain that is closed, with digests that are right.
//
// Requirement: G45.
func TestNothingFollowsTheClosingLine(t *testing.T) {
	t.Parallel()
	open, sum := sealed([32]byte{}, `{"seq":1,"kind":"open"}`)
	closed, sum := sealed(sum, fmt.Sprintf(`{"seq":2,"kind":"close","previous":"%x:1","counts":{"decisions":0,"passed":0}}`, sum))
	require.Equal(t, audit.Consistent, verify(t, open+"\n"+closed+"\n", audit.VerifyOptions{}).Status)
	for _, more := range []string{`"decision","previous":"%x:2","handoff":{"verdict":"passed","governanceRuleId":"R"}`, `"close","previous":"%x:2","counts":{"decisions":0,"passed":0}`} {
		line, last := sealed(sum, fmt.Sprintf(`{"seq":3,"kind":`+more+`}`, sum))
		got := verify(t, open+"\n"+closed+"\n"+line+"\n", audit.VerifyOptions{Head: audit.Head{Digest: last, Lines: 3}})
		require.Equal(t, audit.Broken, got.Status)
		require.Equal(t, 3, got.Line)
		require.Contains(t, got.Why, "outside of any chain")
	}
}

// TestOnlyChainLinesAreRead offers lines that another reader could take for one of a record.
//
// Requirement: G45.
func TestOnlyChainLinesAreRead(t *testing.T) {
	t.Parallel()
	text, head := recordOf(t, audit.Options{}, 0)
	line, sum := sealed([32]byte{}, `{"seq":1,"kind":"open"}`)
	tail := `,"digest":"` + hex.EncodeToString(sum[:]) + `"}`
	for _, odd := range []string{
		" " + line, line + " ", line + "\r", line + "{}", strings.Replace(line, ",", " ,", 1), strings.Replace(line, tail, `,"more":1`+tail, 1),
		strings.Replace(line, tail, strings.ToUpper(tail), 1), strings.Replace(line, `"audit"`, `"\u0061udit"`, 1), strings.Replace(line, `"audit"`, `"Audit"`, 1),
		`{"event":1,"audit":{}}`, `{"audit":1}`, `{"audit":`, "", "[]", "null", `{"a":1}{"b":2}`, `{"a"`, "\ufeff{}", "nonsense",
	} {
		got := verify(t, odd+"\n"+text, audit.VerifyOptions{Head: head})
		require.Equal(t, audit.Broken, got.Status, "%q", odd)
		require.Equal(t, 1, got.Line, "%q", odd)
	}
}

// Requirement: G45.
func TestLineSizeIsLimited(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	long := func(n int) string { return `{"event":"` + strings.Repeat("x", n-len(`{"event":""}`)) + `"}` }
	text, head := recordOf(t, audit.Options{Before: []byte(long(record.MaxLine) + "\n")}, 1)
	require.Equal(t, audit.Verified, verify(t, long(record.MaxLine)+"\n"+text, audit.VerifyOptions{Head: head}).Status)
	text, head = recordOf(t, audit.Options{}, 1)
	for _, end := range []string{"\n", ""} {
		got := verify(t, text+long(record.MaxLine+1)+end, audit.VerifyOptions{Head: head})
		require.Equal(t, audit.Broken, got.Status)
		require.Equal(t, 4, got.Line)
		require.Contains(t, got.Why, "longer than 16777216 bytes")
	}
}

// Requirement: G45.
func TestLongestLineIsWrittenAndRead(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	var b bytes.Buffer
	c, err := audit.New(&b, audit.Options{})
	require.NoError(t, err)
	opening := b.Len()
	require.NoError(t, c.Append(event.Handoff{}))
	pad := record.MaxLine - (b.Len() - opening - 1)
	require.NoError(t, c.Append(event.Handoff{From: strings.Repeat("x", pad)}))
	head, err := c.Close(end)
	require.NoError(t, err)
	require.Equal(t, audit.Verified, verify(t, b.String(), audit.VerifyOptions{Head: head}).Status)
	c, err = audit.New(nil, audit.Options{})
	require.NoError(t, err)
	require.ErrorContains(t, c.Append(event.Handoff{From: strings.Repeat("x", pad+1)}, event.Handoff{From: strings.Repeat("x", pad+2)}), "takes 16777217 bytes, more than the 16777216 of a line")
}

// Requirement: G45.
func TestReadFailureIsAnError(t *testing.T) {
	t.Parallel()
	text, head := recordOf(t, audit.Options{}, 3)
	bad := errors.New("bad disk")
	got, err := audit.Verify(io.MultiReader(strings.NewReader(text[:100]), iotest.ErrReader(bad)), audit.VerifyOptions{Head: head})
	require.ErrorIs(t, err, bad)
	require.ErrorContains(t, err, "read line 1")
	require.Zero(t, got)
	got, err = audit.Verify(iotest.OneByteReader(strings.NewReader(text)), audit.VerifyOptions{Head: head})
	require.NoError(t, err)
	require.Equal(t, audit.Verified, got.Status)
}

// FuzzVerify reads a text as a file, and as the entry of a line whose digest is right.
//
// Requirement: G45.
func FuzzVerify(f *testing.F) {
	text, head := recordOf(f, audit.Options{Run: "run-1"}, 1)
	open, sum := sealed([32]byte{}, `{"seq":1,"kind":"open"}`)
	f.Add(text)
	f.Add("{\"event\":1}\n" + text[:len(text)-3])
	f.Add(open + "\n")
	f.Add(fmt.Sprintf(`{"seq":2,"kind":"decision","previous":"%x:1","handoff":{"verdict":"passed","governanceRuleId":"R","x":[{}]}}`, sum))
	f.Add(fmt.Sprintf(`{"seq":2,"kind":"close","previous":"%x:1","counts":{"decisions":0,"passed":0}}`, sum))
	f.Fuzz(func(t *testing.T, altered string) {
		onlyEqual(t, text, head, altered)
		line, _ := sealed(sum, altered)
		got := verify(t, open+"\n"+line+"\n", audit.VerifyOptions{})
		if got.Status == audit.Broken {
			return
		}
		require.Equal(t, 2, got.Head.Lines)
		var compact bytes.Buffer
		require.NoError(t, json.Compact(&compact, []byte(altered)))
		require.Equal(t, compact.String(), altered, "there is one way to write it")
	})
}

func BenchmarkVerify(b *testing.B) {
	text, head := recordOf(b, audit.Options{}, 1_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if r, _ := audit.Verify(strings.NewReader(text), audit.VerifyOptions{Head: head}); r.Status != audit.Verified {
			b.Fatal(r)
		}
	}
}
