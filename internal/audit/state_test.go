package audit_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/slowtest"
)

// A relay is a chain that several processes write in turn, with other lines
// beside it.
type relay struct {
	t      require.TestingT
	file   *bytes.Buffer
	o      audit.Options
	chain  *audit.Chain
	events int
}

func newRelay(t require.TestingT, o audit.Options) *relay {
	o.Time = start
	r := &relay{t: t, file: &bytes.Buffer{}, o: o}
	var err error
	r.chain, err = audit.New(r.file, o)
	require.NoError(t, err)
	return r
}

// others writes n other lines, none of them equal.
func (r *relay) others(n int) {
	from := r.file.Len()
	for range n {
		r.events++
		fmt.Fprintf(r.file, `{"event":{"seq":%d}}`+"\n", r.events)
	}
	require.NoError(r.t, r.chain.Beside(r.file.Bytes()[from:]))
}

// die returns what is left of a process.
func (r *relay) die() []byte {
	form, err := r.chain.State().MarshalBinary()
	require.NoError(r.t, err)
	r.chain = nil
	return form
}

// follow is the next process.
func (r *relay) follow(form []byte) {
	var s audit.State
	require.NoError(r.t, s.UnmarshalBinary(form))
	var err error
	r.chain, err = audit.Continue(r.file, s, audit.Options{Run: r.o.Run, Key: r.o.Key})
	require.NoError(r.t, err)
}

func (r *relay) close() audit.Head {
	head, err := r.chain.Close(end)
	require.NoError(r.t, err)
	return head
}

// However a chain is split into processes, its file has the bytes that one
// process writes, and verifies the same.
//
// Requirement: G45.
func TestSplitIntoProcessesWritesEqualBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := audit.Options{Run: rapid.StringN(0, 9, -1).Draw(t, "run") + "\xff"}
		if rapid.Bool().Draw(t, "keyed") {
			o.Key = key
		}
		one, many := newRelay(t, o), newRelay(t, o)
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			switch n := rapid.IntRange(0, 4).Draw(t, "n"); rapid.SampledFrom([]string{"append", "beside", "die"}).Draw(t, "step") {
			case "append":
				for _, r := range []*relay{one, many} {
					require.NoError(t, r.chain.Append(list(r.events, n)...))
				}
			case "beside":
				one.others(n)
				many.others(n)
			case "die":
				many.follow(many.die())
			}
			require.Equal(t, one.chain.Head(), many.chain.Head())
			require.Equal(t, one.form(), many.form())
		}
		head := one.close()
		require.Equal(t, head, many.close())
		require.Equal(t, one.file.String(), many.file.String())
		for _, given := range []audit.Head{{}, head} {
			want := verify(t, one.file.String(), audit.VerifyOptions{Key: o.Key, Head: given})
			require.NotContains(t, []audit.Status{audit.Broken, audit.Open}, want.Status)
			require.Equal(t, want, verify(t, many.file.String(), audit.VerifyOptions{Key: o.Key, Head: given}))
		}
	})
}

// form is the state of a process that lives on.
func (r *relay) form() []byte {
	form, err := r.chain.State().MarshalBinary()
	require.NoError(r.t, err)
	return form
}

// TestAlterationBetweenProcessesIsFound alters each line while no process runs; the
// next one continues from the stored state.
//
// Requirement: G45.
func TestAlterationBetweenProcessesIsFound(t *testing.T) {
	t.Parallel()
	for name, k := range map[string][]byte{"SHA-256": nil, "HMAC": key} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, tail := range []int{0, 1, 3} { // other lines that no line of the chain covers yet
				r := newRelay(t, audit.Options{Run: "run-1", Key: k})
				r.others(2)
				require.NoError(t, r.chain.Append(list(0, 2)...))
				r.others(tail)
				state := r.chain.State()
				form, lines := r.die(), slices.Collect(strings.Lines(r.file.String()))
				found := func(what string, altered ...string) {
					r.file = bytes.NewBufferString(strings.Join(altered, ""))
					stopped := verify(t, r.file.String(), audit.VerifyOptions{Key: k, State: state})
					require.Equal(t, audit.Broken, stopped.Status, "%s: by the state: %+v", what, stopped)
					require.NotEmpty(t, stopped.Why)
					r.follow(form)
					r.others(1)
					require.NoError(t, r.chain.Append(decided(2)))
					head := r.close()
					for _, given := range []audit.Head{{}, head} {
						got := verify(t, r.file.String(), audit.VerifyOptions{Key: k, Head: given})
						require.Equal(t, audit.Broken, got.Status, "%s: %+v", what, got)
					}
				}
				for i, line := range lines {
					found(fmt.Sprint("edit ", i), slices.Concat(lines[:i], []string{strings.Replace(line, "e", "E", 1)}, lines[i+1:])...)
					found(fmt.Sprint("remove ", i), slices.Concat(lines[:i], lines[i+1:])...)
					found(fmt.Sprint("cut at ", i), lines[:i]...)
					for _, more := range []string{line, "{}\n"} {
						for _, at := range []int{i, len(lines)} {
							found(fmt.Sprintf("insert at %d %q", at, more), slices.Insert(slices.Clone(lines), at, more)...)
						}
					}
					for j := range i {
						swapped := slices.Clone(lines)
						swapped[i], swapped[j] = swapped[j], swapped[i]
						found(fmt.Sprint("swap ", i, " and ", j), swapped...)
					}
				}
			}
		})
	}
}

// TestFileCutAtTheBoundaryIsNotAltered takes the state at each boundary, and
// cuts off what was written after it, as a crash may.
//
// Requirement: G45.
func TestFileCutAtTheBoundaryIsNotAltered(t *testing.T) {
	t.Parallel()
	for _, k := range [][]byte{nil, key} {
		for cut := range 6 {
			r := newRelay(t, audit.Options{Run: "run-1", Key: k})
			var form []byte
			var state audit.State
			var size int
			for i := range 6 {
				if i == cut {
					state, form, size = r.chain.State(), r.form(), r.file.Len()
				}
				r.others(i % 3)
				require.NoError(t, r.chain.Append(list(i, i%2)...))
			}
			r.file.Truncate(size)
			got := verify(t, r.file.String(), audit.VerifyOptions{Key: k, State: state})
			require.Equal(t, audit.Open, got.Status, "%+v", got)
			require.Equal(t, strings.Count(r.file.String(), "\n"), got.Covered, "all of it")
			require.NotContains(t, got.Why, "nothing covers")
			torn := verify(t, r.file.String()+`{"ev`, audit.VerifyOptions{Key: k, State: state})
			require.Equal(t, audit.Open, torn.Status)
			require.Equal(t, got.Covered, torn.Covered)
			r.follow(form)
			r.others(1)
			head := r.close()
			got = verify(t, r.file.String(), audit.VerifyOptions{Key: k, Head: head, State: r.chain.State()})
			require.Equal(t, audit.Verified, got.Status, "%+v", got)
			require.Equal(t, cut/2, got.Decisions)
		}
	}
}

// Requirement: G45.
func TestWrongStateIsRefused(t *testing.T) {
	t.Parallel()
	for _, k := range [][]byte{nil, key} {
		r := newRelay(t, audit.Options{Run: "run-1", Key: k})
		require.NoError(t, r.chain.Append(list(0, 4)...))
		r.others(2)
		state := r.chain.State()
		form := r.die()
		refused := func(wrong []byte) {
			var s audit.State
			if err := s.UnmarshalBinary(wrong); err != nil {
				require.ErrorContains(t, err, "no state of a chain")
				require.True(t, s.IsZero())
				return
			}
			_, err := audit.Continue(nil, s, r.o)
			require.ErrorContains(t, err, "not one of this chain")
			require.Equal(t, audit.Broken, verify(t, r.file.String(), audit.VerifyOptions{Key: k, State: s}).Status)
		}
		for i := 0; i < len(form); i += slowtest.Every(5) {
			wrong := bytes.Clone(form)
			wrong[i] ^= 1 << (i % 8)
			refused(wrong)
			if i > 0 {
				refused(form[:i])
			}
		}
		refused(append(bytes.Clone(form), 0))
		for name, o := range map[string]audit.Options{"run": {Run: "run-2", Key: k}, "key": {Run: "run-1", Key: []byte("another key of sufficient length")}} {
			_, err := audit.Continue(nil, state, o)
			require.ErrorIs(t, err, audit.ErrState, name)
			require.ErrorContains(t, err, "of another run or key", name)
		}
	}
	_, err := audit.Continue(nil, audit.State{}, audit.Options{})
	require.ErrorContains(t, err, "give one that a chain returned")
}

// A state that is right for another place breaks the record.
//
// Requirement: G45.
func TestStateOfAnotherPositionBreaksTheRecord(t *testing.T) {
	t.Parallel()
	for _, k := range [][]byte{nil, key} {
		o := audit.Options{Run: "run-1", Key: k}
		twin := newRelay(t, o)
		require.NoError(t, twin.chain.Append(decided(5)))
		wrong := map[string][]byte{"of a twin": twin.die()}
		r := newRelay(t, o)
		wrong["too old"] = r.form()
		require.NoError(t, r.chain.Append(decided(0)))
		r.others(2)
		wrong["before a line of another kind"] = r.form()
		r.others(1)
		cut := r.file.Len()
		r.others(1)
		wrong["too new"] = r.form()
		r.file.Truncate(cut)
		for name, form := range wrong {
			next := &relay{t: t, file: bytes.NewBuffer(bytes.Clone(r.file.Bytes())), o: o}
			next.follow(form)
			var s audit.State
			require.NoError(t, s.UnmarshalBinary(form))
			require.Equal(t, audit.Broken, verify(t, next.file.String(), audit.VerifyOptions{Key: k, State: s}).Status, name)
			head := next.close()
			require.Equal(t, audit.Broken, verify(t, next.file.String(), audit.VerifyOptions{Key: k, Head: head}).Status, name)
		}
	}
}

// A chain that was closed is not continued: another one follows it.
//
// Requirement: G45.
func TestNewChainFollowsAClosedOne(t *testing.T) {
	t.Parallel()
	r := newRelay(t, audit.Options{Run: "run-1", Key: key})
	require.False(t, r.chain.State().Closed())
	require.NoError(t, r.chain.Append(list(0, 3)...))
	head := r.close()
	var state audit.State
	require.NoError(t, state.UnmarshalBinary(r.form()))
	require.True(t, state.Closed())
	require.Equal(t, head, state.Head())
	_, err := audit.Continue(r.file, state, r.o)
	require.ErrorIs(t, err, audit.ErrClosed)
	require.Equal(t, audit.Verified, verify(t, r.file.String(), audit.VerifyOptions{Key: key, State: state, Head: head}).Status)
	require.Equal(t, audit.Broken, verify(t, r.file.String()+"{}\n", audit.VerifyOptions{Key: key, State: state}).Status)

	next, err := audit.New(r.file, audit.Options{Run: "run-1", Key: key, Previous: state.Head(), Time: end})
	require.NoError(t, err)
	require.Equal(t, audit.Broken, verify(t, r.file.String(), audit.VerifyOptions{Key: key, State: state}).Status, "it went on")
	require.NoError(t, next.Append(decided(3)))
	head, err = next.Close(end)
	require.NoError(t, err)
	got := verify(t, r.file.String(), audit.VerifyOptions{Key: key, Head: head})
	require.Equal(t, audit.Verified, got.Status, got.Why)
	require.Equal(t, []int{2, 4}, []int{got.Runs, got.Decisions})
}

// Requirement: G45.
func TestBrokenChainHasNoState(t *testing.T) {
	t.Parallel()
	d := &disk{room: -1}
	c, err := audit.New(d, audit.Options{})
	require.NoError(t, err)
	require.False(t, c.State().IsZero())
	d.room = d.Len()
	require.ErrorIs(t, c.Append(decided(0)), errFull)
	require.True(t, c.State().IsZero())
	form, err := c.State().MarshalBinary()
	require.NoError(t, err)
	require.Empty(t, form)
	s := newRelay(t, audit.Options{}).chain.State()
	require.NoError(t, s.UnmarshalBinary(form))
	require.True(t, s.IsZero())
	require.Equal(t, audit.Open, verify(t, "", audit.VerifyOptions{State: s}).Status)
}

// Requirement: G45.
func TestStateIsSmall(t *testing.T) {
	t.Parallel()
	r := newRelay(t, audit.Options{Key: key})
	require.NoError(t, r.chain.Append(list(0, 1000)...))
	require.LessOrEqual(t, len(r.form()), 90)
	r.others(1000)
	require.LessOrEqual(t, len(r.form()), 200)
}

// A state that was taken does not change.
//
// Requirement: G45.
func TestStateIsACopy(t *testing.T) {
	t.Parallel()
	r := newRelay(t, audit.Options{})
	require.NoError(t, r.chain.Append(list(0, 3)...))
	r.others(1)
	s := r.chain.State()
	before, err := s.MarshalBinary()
	require.NoError(t, err)
	for _, c := range []*audit.Chain{r.chain, nil} {
		if c == nil {
			c, err = audit.Continue(nil, s, audit.Options{})
			require.NoError(t, err)
		}
		require.NoError(t, c.Append(list(0, 9)...))
		require.NoError(t, c.Beside([]byte("{}\n")))
		after, err := s.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, before, after)
	}
}

// FuzzState reads a text as a state.
//
// Requirement: G45.
func FuzzState(f *testing.F) {
	r := newRelay(f, audit.Options{})
	f.Add(r.form())
	require.NoError(f, r.chain.Append(list(0, 4)...))
	r.others(2)
	f.Add(r.form())
	r.close()
	f.Add(r.form())
	f.Fuzz(func(t *testing.T, form []byte) {
		var s audit.State
		if s.UnmarshalBinary(form) != nil {
			require.True(t, s.IsZero())
			return
		}
		again, err := s.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, len(form), len(again))
		require.True(t, bytes.Equal(form, again), "there is one way to write it")
		_, _ = audit.Continue(nil, s, audit.Options{})
	})
}

func ExampleContinue() {
	var file bytes.Buffer
	chain, _ := audit.New(&file, audit.Options{Run: "run-1"})
	_ = chain.Append(decided(0))
	kept, _ := chain.State().MarshalBinary() // with the file, when this much of it is written

	// Another process.
	var state audit.State
	if err := state.UnmarshalBinary(kept); err != nil {
		panic(err)
	}
	chain, err := audit.Continue(&file, state, audit.Options{Run: "run-1"})
	if err != nil {
		panic(err)
	}
	_ = chain.Append(decided(1))
	head, _ := chain.Close(time.Unix(60, 0))
	r, _ := audit.Verify(&file, audit.VerifyOptions{Head: head})
	fmt.Printf("%s: %d decisions\n", r.Status, r.Decisions)
	// Output:
	// verified: 2 decisions
}
