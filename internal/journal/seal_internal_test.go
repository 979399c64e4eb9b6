package journal

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// someKey returns a key that a test can name.
func someKey(c byte) []byte { return bytes.Repeat([]byte{c}, KeyBytes) }

func newTestSealer(t require.TestingT, c byte) *sealer {
	s, err := newSealer(someKey(c), rand.Reader)
	require.NoError(t, err)
	return s
}

// stored returns a sealed text as it comes back from a line of the journal.
func stored(t require.TestingT, s sealedText) sealedText {
	line, err := json.Marshal(s)
	require.NoError(t, err)
	var back sealedText
	require.NoError(t, json.Unmarshal(line, &back))
	return back
}

func TestSealedTextOpensInItsPlaceOnly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newTestSealer(t, 1)
		plain := rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		place := rapid.SliceOfN(rapid.SampledFrom([]string{"", "r", "r1", "1", "\x01", "\x02r1"}), 3, 3)
		here, there := place.Draw(t, "here"), place.Draw(t, "there")
		sealed, err := s.seal(plain, joinLengths(here...), rapid.Bool().Draw(t, "padded"))
		require.NoError(t, err)
		sealed = stored(t, sealed)
		got, err := s.open(sealed, joinLengths(here...))
		require.NoError(t, err)
		require.True(t, bytes.Equal(plain, got))
		if strings.Join(here, "|") != strings.Join(there, "|") {
			_, err = s.open(sealed, joinLengths(there...))
			require.ErrorIs(t, err, ErrDamaged)
		}
	})
}

func TestSealedTextRevealsNothing(t *testing.T) {
	t.Parallel()
	s := newTestSealer(t, 1)
	first, err := s.seal([]byte("CANARY-7f3a"), []byte("place"), false)
	require.NoError(t, err)
	again, err := s.seal([]byte("CANARY-7f3a"), []byte("place"), false)
	require.NoError(t, err)
	require.NotEqual(t, first.Nonce, again.Nonce)
	require.NotEqual(t, first.Data, again.Data, "equal texts cannot be told to be equal")
	line, err := json.Marshal(first)
	require.NoError(t, err)
	require.NotContains(t, string(line), "CANARY")
	require.NotContains(t, string(first.Data), "CANARY")
	require.Regexp(t, `^\{"key":"[0-9a-f]{16}","nonce":"[A-Za-z0-9+/]{16}","data":"[A-Za-z0-9+/=]+"\}$`, string(line))
}

// Whether a text was padded is covered by the tag, and so is its length.
func TestPaddingIsAuthenticated(t *testing.T) {
	t.Parallel()
	s := newTestSealer(t, 1)
	for _, padded := range []bool{true, false} {
		sealed, err := s.seal([]byte("\x01text"), []byte("place"), padded)
		require.NoError(t, err)
		require.Equal(t, padded, stored(t, sealed).Padded)
		sealed.Padded = !padded
		_, err = s.open(sealed, []byte("place"))
		require.ErrorIs(t, err, ErrDamaged)
	}
	for _, wrong := range [][]byte{{}, {0x80}, {2, 'x'}, bytes.Repeat([]byte{0xff}, 11)} { // as another program could have encrypted them
		_, err := unpad(wrong)
		require.ErrorIs(t, err, ErrDamaged)
	}
}

// Padded lengths are few, take at most 12% above 64 KiB, and give the text back.
func TestPaddedLengths(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(t, "plain")
		padded := pad(plain)
		require.Contains(t, []int{1 << 10, 4 << 10}, len(padded))
		got, err := unpad(padded)
		require.NoError(t, err)
		require.True(t, bytes.Equal(plain, got))
	})
	lengths, before := map[int]bool{}, 0
	for n := 1; n < maxPadded+1000; n += 1009 {
		length := paddedLength(n)
		require.GreaterOrEqual(t, length, max(n, before))
		if before = length; n > coarsePadding {
			require.LessOrEqual(t, float64(length), 1.12*float64(n))
		}
		if n <= maxPadded {
			lengths[length] = true
			require.LessOrEqual(t, length, maxPadded)
		}
	}
	require.Less(t, len(lengths), 300)
}

func TestEveryBitOfASealedTextCounts(t *testing.T) {
	t.Parallel()
	s := newTestSealer(t, 1)
	sealed, err := s.seal([]byte("text"), []byte("place"), false)
	require.NoError(t, err)
	for _, field := range []func(*sealedText) *[]byte{
		func(s *sealedText) *[]byte { return &s.Nonce },
		func(s *sealedText) *[]byte { return &s.Data },
	} {
		whole := *field(&sealed)
		for bit := range 8 * len(whole) {
			changed := stored(t, sealed)
			(*field(&changed))[bit/8] ^= 1 << (bit % 8)
			_, err := s.open(changed, []byte("place"))
			require.ErrorIs(t, err, ErrDamaged)
		}
		for n := range len(whole) {
			changed := stored(t, sealed)
			*field(&changed) = whole[:n]
			_, err := s.open(changed, []byte("place"))
			require.ErrorIs(t, err, ErrDamaged, "cut after %d bytes", n)
		}
	}
}

func TestWrongKeyIsReported(t *testing.T) {
	t.Parallel()
	one, two := newTestSealer(t, 1), newTestSealer(t, 2)
	require.NotEqual(t, one.id, two.id)
	require.Equal(t, one.id, newTestSealer(t, 1).id, "the same key has the same id in every process")
	sealed, err := one.seal([]byte("text"), []byte("place"), false)
	require.NoError(t, err)

	_, err = two.open(sealed, []byte("place"))
	require.ErrorIs(t, err, ErrNoKey)
	require.EqualError(t, err, "encrypted under the key "+one.id+", and the key given is "+two.id)

	_, err = (*sealer)(nil).open(sealed, []byte("place"))
	require.EqualError(t, err, "encrypted under the key "+one.id+", and no key was given")

	sealed.Key = two.id // whoever renames it does not make it another key's
	_, err = two.open(sealed, []byte("place"))
	require.ErrorIs(t, err, ErrDamaged)
}

// TestStoredFormsDoNotChange checks that the forms of journals on disk are still
// read.
func TestStoredFormsDoNotChange(t *testing.T) {
	t.Parallel()
	s, err := newSealer(someKey(1), strings.NewReader("twelve bytes"))
	require.NoError(t, err)
	sealed, err := s.seal([]byte("text"), joinLengths("run", "session", "kind"), false)
	require.NoError(t, err)
	line, err := json.Marshal(sealed)
	require.NoError(t, err)
	require.Equal(t, `{"key":"c864f7c20db88c74","nonce":"dHdlbHZlIGJ5dGVz","data":"2+WdrR3EoLFmVvZI5jq25qsmFfE="}`, string(line))
	require.Equal(t, "mac 9c619d99f30e46484c780638b705aa90e40933c3fc7757a711df07f7e6327a57", macLine(newDigester(someKey(1))))
}

func TestNewSealer(t *testing.T) {
	t.Parallel()
	s, err := newSealer(nil, rand.Reader)
	require.NoError(t, err)
	require.Nil(t, s)
	_, err = s.seal([]byte("text"), []byte("place"), false)
	require.ErrorContains(t, err, "there is no journal key")
	for _, n := range []int{0, 16, 31, 33} {
		_, err := newSealer(make([]byte, n), rand.Reader)
		require.ErrorContains(t, err, "openssl rand -hex 32", "%d bytes", n)
	}
}

// TestNothingIsSealedWithoutRandomness checks that a source that fails never
// leads to a nonce of zeroes.
func TestNothingIsSealedWithoutRandomness(t *testing.T) {
	t.Parallel()
	broken := errors.New("no entropy")
	s, err := newSealer(someKey(1), io.MultiReader(strings.NewReader("short"), errReader{broken}))
	require.NoError(t, err)
	sealed, err := s.seal([]byte("text"), []byte("place"), false)
	require.ErrorIs(t, err, broken)
	require.Zero(t, sealed)
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// FuzzOpenSealed checks that nothing but what was sealed opens, and that nothing panics.
func FuzzOpenSealed(f *testing.F) {
	s, err := newSealer(someKey(1), strings.NewReader("twelve bytes")) // the same in each process that fuzzes
	require.NoError(f, err)
	sealed, err := s.seal([]byte("text"), []byte("place"), false)
	require.NoError(f, err)
	line, err := json.Marshal(sealed)
	require.NoError(f, err)
	f.Add(string(line), "place")
	f.Add(string(line), "elsewhere")
	f.Add(`{"key":"`+s.id+`"}`, "place")
	f.Add(`{"key":"`+s.id+`","nonce":"AAAA","data":""}`, "")
	f.Add(`{}`, "")
	f.Fuzz(func(t *testing.T, line, place string) {
		var read sealedText
		if json.Unmarshal([]byte(line), &read) != nil {
			return
		}
		plain, err := s.open(read, []byte(place))
		same := read.Key == sealed.Key && bytes.Equal(read.Nonce, sealed.Nonce) && bytes.Equal(read.Data, sealed.Data) && place == "place"
		require.Equal(t, same, err == nil)
		if same {
			require.Equal(t, "text", string(plain))
		} else if read.Key == s.id {
			require.ErrorIs(t, err, ErrDamaged)
		} else {
			require.ErrorIs(t, err, ErrNoKey)
		}
	})
}
