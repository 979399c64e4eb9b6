package envelope_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Requirement: G19.
func TestDigestCoversEveryField(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*envelope.Record)
	}{
		{"id", func(r *envelope.Record) { r.ID = "e2" }},
		{"producer", func(r *envelope.Record) { r.Producer = "boss" }},
		{"task", func(r *envelope.Record) { r.Task = "t2" }},
		{"task taken away", func(r *envelope.Record) { r.Task = "" }},
		{"run", func(r *envelope.Record) { r.Run = "r2" }},
		{"classification lowered", func(r *envelope.Record) { r.Classification = label.Public }},
		{"classification raised", func(r *envelope.Record) { r.Classification = label.Secret }},
		{"trust", func(r *envelope.Record) { r.Trust = label.Untrusted }},
		{"creation by a nanosecond", func(r *envelope.Record) { r.CreatedAt = r.CreatedAt.Add(1) }},
		{"creation by a second", func(r *envelope.Record) { r.CreatedAt = r.CreatedAt.Add(time.Second) }},
		{"expiry by a nanosecond", func(r *envelope.Record) { r.ExpiresAt = r.ExpiresAt.Add(1) }},
		{"expiry taken away", func(r *envelope.Record) { r.ExpiresAt = time.Time{} }},
		{"hops", func(r *envelope.Record) { r.Hops++ }},
		{"a parent replaced", func(r *envelope.Record) { r.DerivedFrom = []envelope.ID{"e0", "i1"} }},
		{"a parent added", func(r *envelope.Record) { r.DerivedFrom = append(r.DerivedFrom, "i1") }},
		{"parents swapped", func(r *envelope.Record) { r.DerivedFrom = []envelope.ID{"i0", "e0"} }},
		{"parents taken away", func(r *envelope.Record) { r.DerivedFrom = nil }},
		{"a tag replaced", func(r *envelope.Record) { r.Tags = []string{"findings", "scores"} }},
		{"tags joined", func(r *envelope.Record) { r.Tags = []string{"findingsscore"} }},
		{"a parent made a tag", func(r *envelope.Record) {
			r.DerivedFrom, r.Tags = r.DerivedFrom[:1], append([]string{"i0"}, r.Tags...)
		}},
		{"text", func(r *envelope.Record) { r.Text += "." }},
		{"text taken away", func(r *envelope.Record) { r.Text = "" }},
		{"structured part", func(r *envelope.Record) { r.JSON = json.RawMessage(`{"a":2}`) }},
		{"structured part taken away", func(r *envelope.Record) { r.JSON = nil }},
		{"text and structured part swapped", func(r *envelope.Record) { r.Text, r.JSON = `{"a":1}`, json.RawMessage(`"text"`) }},
		{"one bit of the digest", func(r *envelope.Record) {
			r.Digest = r.Digest[:63] + string("0123456789abcdef"[strings.IndexByte("0123456789abcdef", r.Digest[63])^1])
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := newEnvelope(t, full(), structured(t, `{"a":1}`).WithText("text"))
			r := e.Record()
			tt.change(&r)
			changed, err := r.Envelope()
			require.NoError(t, err)
			require.ErrorIs(t, changed.Genuine(), envelope.ErrTampered)
			require.NotContains(t, changed.Genuine().Error(), "text")
			require.NoError(t, e.Genuine())
		})
	}
}

// Requirement: G19.
func TestDigestIsFixed(t *testing.T) {
	t.Parallel()
	// A stored digest must stay valid: this value changes only together with the
	// version in the digest's input.
	e := newEnvelope(t, full(), structured(t, `{"a":1}`).WithText("text"))
	require.Equal(t, "2c7d50159d747c55ed27007f702f71045aec7cbc827a331a1d0d709e38427f43", e.Digest())
}

// Requirement: G19.
func TestDigestIgnoresHowATimeIsWritten(t *testing.T) {
	t.Parallel()
	h := full()
	e := newEnvelope(t, h, envelope.Text("x"))
	h.CreatedAt, h.ExpiresAt = h.CreatedAt.In(time.FixedZone("", 3600)), h.ExpiresAt.Local()
	require.Equal(t, e.Digest(), newEnvelope(t, h, envelope.Text("x")).Digest())
}

// near draws envelopes that differ in little: fields from few letters, so that
// bytes wander from one field to the next.
func near(t *rapid.T) envelope.Record {
	word := func(name string) string {
		return rapid.StringOfN(rapid.SampledFrom([]rune("a\x00\x01")), 0, 3, -1).Draw(t, name)
	}
	words := func(name string) []string {
		return rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune("a\x00")), 0, 2, -1), 0, 2).Draw(t, name)
	}
	r := envelope.Record{Text: word("text")}
	r.ID, r.Producer = envelope.ID("a"+word("id")), "a"+word("producer")
	r.Task, r.Run = task.ID(word("task")), word("run")
	r.Classification = rapid.SampledFrom([]label.Classification{label.Public, label.Internal}).Draw(t, "classification")
	r.Trust = rapid.SampledFrom([]label.Trust{label.Untrusted, label.Endorsed}).Draw(t, "trust")
	r.CreatedAt = noon.Add(time.Duration(rapid.IntRange(0, 1).Draw(t, "created")))
	if n := rapid.IntRange(0, 2).Draw(t, "expires"); n > 0 {
		r.ExpiresAt = noon.Add(time.Duration(n) * time.Second)
	}
	r.Hops = rapid.IntRange(0, 1).Draw(t, "hops")
	for _, id := range words("derived") {
		r.DerivedFrom = append(r.DerivedFrom, envelope.ID(id))
	}
	if tags := words("tags"); len(tags) > 0 {
		r.Tags = tags
	}
	if raw := rapid.SampledFrom([]string{"", `""`, `"a"`, `{}`}).Draw(t, "json"); raw != "" {
		r.JSON = json.RawMessage(raw)
	}
	return r
}

// Requirement: G19.
func TestDifferentEnvelopesHaveDifferentDigests(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		digest := func(r envelope.Record) string {
			e, err := r.Envelope()
			require.NoError(t, err)
			return newEnvelope(t, r.Header, e.Open()).Digest()
		}
		a := rapid.Custom(near).Draw(t, "a")
		b := a
		if rapid.Bool().Draw(t, "unrelated") {
			b = rapid.Custom(near).Draw(t, "b")
		} else { // change one or two fields only
			c := rapid.Custom(near).Draw(t, "c")
			for range rapid.IntRange(1, 2).Draw(t, "fields") {
				switch rapid.IntRange(0, 12).Draw(t, "field") {
				case 0:
					b.ID = c.ID
				case 1:
					b.Producer = c.Producer
				case 2:
					b.Task = c.Task
				case 3:
					b.Run = c.Run
				case 4:
					b.Classification = c.Classification
				case 5:
					b.Trust = c.Trust
				case 6:
					b.CreatedAt = c.CreatedAt
				case 7:
					b.ExpiresAt = c.ExpiresAt
				case 8:
					b.Hops = c.Hops
				case 9:
					b.DerivedFrom = c.DerivedFrom
				case 10:
					b.Tags = c.Tags
				case 11:
					b.Text = c.Text
				case 12:
					b.JSON = c.JSON
				}
			}
		}
		same, err := json.Marshal(a)
		require.NoError(t, err)
		other, err := json.Marshal(b)
		require.NoError(t, err)
		require.Equal(t, string(same) == string(other), digest(a) == digest(b), "%s\n%s", same, other)
	})
}

// A digest that no hash has is of no envelope.
func TestInvalidDigest(t *testing.T) {
	t.Parallel()
	r := newEnvelope(t, full(), envelope.Text("x")).Record()
	for _, bad := range []string{"", "ab", strings.Repeat("g", 64), r.Digest[:63], r.Digest + "a", r.Digest + "aa", strings.ToUpper(r.Digest)} {
		r.Digest = bad
		e, err := r.Envelope()
		require.NoError(t, err)
		require.ErrorIs(t, e.Genuine(), envelope.ErrTampered, bad)
	}
}
