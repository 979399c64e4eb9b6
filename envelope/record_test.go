package envelope_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// stored returns e as it comes back from a store.
func stored(t require.TestingT, e *envelope.Envelope) *envelope.Envelope {
	raw, err := json.Marshal(e.Record())
	require.NoError(t, err)
	var r envelope.Record
	require.NoError(t, json.Unmarshal(raw, &r))
	back, err := r.Envelope()
	require.NoError(t, err)
	return back
}

func requireSame(t require.TestingT, want, got *envelope.Envelope) {
	require.NoError(t, got.Genuine())
	require.Equal(t, want.Digest(), got.Digest())
	require.Equal(t, want.Open(), got.Open())
	w, g := want.Header(), got.Header()
	require.True(t, w.CreatedAt.Equal(g.CreatedAt) && w.ExpiresAt.Equal(g.ExpiresAt))
	w.CreatedAt, w.ExpiresAt, g.CreatedAt, g.ExpiresAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	require.Equal(t, w, g)
}

func TestRecordRoundTrip(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, json string }{
		{"empty", "", ""},
		{"text", "two\nlines & <tags> \u2028 \x00 \U0001f600", ""},
		{"object", "", `{"b":[1,2.50,-0,1e3],"a":{"<&>":"\u2028"}}`},
		{"both", "text", `["x"]`},
		{"null", "", `null`},
		{"empty string", "", `""`},
		{"scalar", "", `true`},
		{"big integer", "", `{"id":12345678901234567890}`},
		{"big double", "", `{"n":1e20,"m":-4.5e17,"o":1e21,"p":1.5e300}`},
		{"just at the limit", "", `[9007199254740992,9007199254740993,-9007199254740993,9007199254740994.0]`},
		{"many long integers", "", "[" + strings.Repeat("1e15,", 999) + "1e15]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := envelope.Text(tt.text)
			if tt.json != "" {
				p = structured(t, tt.json).WithText(tt.text)
			}
			e := newEnvelope(t, full(), p)
			requireSame(t, e, stored(t, e))
		})
	}
}

func TestRecordRoundTripOfAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.Custom(near).Draw(t, "record")
		p := envelope.Text(rapid.String().Draw(t, "text"))
		if rapid.Bool().Draw(t, "structured") {
			raw, err := json.Marshal(anyJSON(3).Draw(t, "json"))
			require.NoError(t, err)
			v, err := jsonvalue.Parse(string(raw))
			require.NoError(t, err)
			p = p.WithStructured(v)
		}
		e := newEnvelope(t, r.Header, p)
		requireSame(t, e, stored(t, e))
	})
}

func TestRecordKeepsTheZone(t *testing.T) {
	t.Parallel()
	h := full()
	h.CreatedAt = h.CreatedAt.In(time.FixedZone("CET", 3600)).Add(123456789)
	e := newEnvelope(t, h, envelope.Text("x"))
	requireSame(t, e, stored(t, e))
}

func TestRecordRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*envelope.Record)
		want   error
	}{
		{"a header that cannot be", func(r *envelope.Record) { r.ID = "" }, envelope.ErrInvalid},
		{"duplicate keys", func(r *envelope.Record) { r.JSON = json.RawMessage(`{"a":1,"a":2}`) }, jsonvalue.ErrInvalid},
		{"an empty value", func(r *envelope.Record) { r.JSON = json.RawMessage{} }, jsonvalue.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newEnvelope(t, full(), envelope.Text("x")).Record()
			tt.change(&r)
			e, err := r.Envelope()
			require.ErrorIs(t, err, tt.want)
			require.Nil(t, e)
		})
	}
	t.Run("an unknown level", func(t *testing.T) {
		t.Parallel()
		var r envelope.Record
		require.Error(t, json.Unmarshal([]byte(`{"id":"e","producer":"a","classification":"open"}`), &r))
	})
}

// Requirement: G19.
func TestDigestIsNeverInvented(t *testing.T) {
	t.Parallel()
	r := newEnvelope(t, full(), envelope.Text("x")).Record()
	r.Digest = "" // a store that lost the column
	e, err := r.Envelope()
	require.NoError(t, err)
	require.ErrorIs(t, e.Genuine(), envelope.ErrTampered)
}

// anyJSON draws a value that JSON can hold.
func anyJSON(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			if depth > 0 {
				return rapid.SliceOfN(anyJSON(depth-1), 0, 3).Draw(t, "array")
			}
		case 1:
			if depth > 0 {
				return rapid.MapOfN(rapid.String(), anyJSON(depth-1), 0, 3).Draw(t, "object")
			}
		case 2:
			return rapid.String().Draw(t, "string")
		case 3:
			return rapid.Bool().Draw(t, "bool")
		case 4:
			return rapid.Float64().Draw(t, "float")
		case 5:
			return rapid.Int64().Draw(t, "integer")
		}
		return nil
	})
}
