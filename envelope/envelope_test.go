package envelope_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/label"
	"github.com/stretchr/testify/require"
)

// noon is when the envelopes of these tests are made.
var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// full returns a header that uses every field.
func full() envelope.Header {
	return envelope.Header{
		ID: "e1", Producer: "analyst", Task: "t1", Run: "r1",
		Classification: label.Confidential, Trust: label.Endorsed,
		CreatedAt: noon, ExpiresAt: noon.Add(10 * time.Second), Hops: 3,
		DerivedFrom: []envelope.ID{"e0", "i0"}, Tags: []string{"findings", "score"},
	}
}

func newEnvelope(t require.TestingT, h envelope.Header, p envelope.Payload) *envelope.Envelope {
	e, err := envelope.New(h, p)
	require.NoError(t, err)
	return e
}

func structured(t require.TestingT, raw string) envelope.Payload {
	p, err := envelope.Structured(raw)
	require.NoError(t, err)
	return p
}

// Requirement: G11.
func TestEnvelopeOutlivesTheHeaderItWasMadeFrom(t *testing.T) {
	t.Parallel()
	h := full()
	h.Tags = append(make([]string, 0, 8), h.Tags...) // room to grow into what a shallow copy would share
	e := newEnvelope(t, h, envelope.Text("payload"))
	h.Tags[0], h.DerivedFrom[0] = "changed", "changed"
	_ = append(h.Tags, "more")
	require.Equal(t, full(), e.Header())
	require.NoError(t, e.Genuine())
}

// Requirement: G11.
func TestHeaderAndRecordAreCopies(t *testing.T) {
	t.Parallel()
	e := newEnvelope(t, full(), structured(t, `{"a":1}`))
	digest := e.Digest()
	h, r := e.Header(), e.Record()
	h.Tags[0], h.DerivedFrom[0], h.ID = "changed", "changed", "changed"
	r.Tags[0], r.DerivedFrom[0], r.Text, r.JSON[1] = "changed", "changed", "changed", 'x'
	require.Equal(t, full(), e.Header())
	canonical, _ := e.Open().JSON()
	require.Equal(t, `{"a":1}`, canonical)
	require.NoError(t, e.Genuine())
	require.Equal(t, digest, e.Digest())
}

// Requirement: G11.
func TestDecodedValueIsNotThePayload(t *testing.T) {
	t.Parallel()
	v, err := jsonvalue.Parse(`{"a":{"b":[1]}}`)
	require.NoError(t, err)
	e := newEnvelope(t, full(), envelope.Text("").WithStructured(v))
	v.Value().(map[string]any)["a"].(map[string]any)["b"].([]any)[0] = "changed"
	v.Value().(map[string]any)["more"] = true
	canonical, _ := e.Open().JSON()
	require.Equal(t, `{"a":{"b":[1]}}`, canonical)
	require.NoError(t, e.Genuine())
}

// Requirement: G11.
func TestPayloadsAreValues(t *testing.T) {
	t.Parallel()
	p := envelope.Text("one")
	q := p.WithText("two")
	require.Equal(t, "one", p.Text())
	require.Equal(t, "two", q.Text())
	e := newEnvelope(t, full(), p)
	opened := e.Open().WithText("three")
	require.Equal(t, "three", opened.Text())
	require.Equal(t, "one", e.Open().Text())
}

// Requirement: G11.
func TestConcurrentReadersWhileTheSourceChanges(t *testing.T) {
	t.Parallel()
	h := full()
	e := newEnvelope(t, h, envelope.Text("payload"))
	digest := e.Digest()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 100 {
				mine := e.Header()
				mine.Tags[0] = fmt.Sprint(i) // under -race a shared slice is found here
				if e.Genuine() != nil || e.Digest() != digest || e.Record().Digest != digest {
					t.Error("the envelope changed")
				}
			}
		})
	}
	for i := range 100 {
		h.Tags[1], h.DerivedFrom[1] = fmt.Sprint(i), envelope.ID(fmt.Sprint(i))
	}
	wg.Wait()
}

// Requirement: G16.
func TestFresh(t *testing.T) {
	t.Parallel()
	expiring := newEnvelope(t, full(), envelope.Text("x"))
	h := full()
	h.ExpiresAt = time.Time{}
	lasting := newEnvelope(t, h, envelope.Text("x"))
	zone := time.FixedZone("far east", 12*3600)
	tests := []struct {
		name string
		e    *envelope.Envelope
		at   time.Time
		want error
	}{
		{"a nanosecond before it is made", expiring, noon.Add(-1), envelope.ErrInvalid},
		{"when it is made", expiring, noon, nil},
		{"at 9.999 s", expiring, noon.Add(9999 * time.Millisecond), nil},
		{"a nanosecond before its expiry", expiring, noon.Add(10*time.Second - 1), nil},
		{"at its expiry", expiring, noon.Add(10 * time.Second), envelope.ErrExpired},
		{"at its expiry, in another zone", expiring, noon.Add(10 * time.Second).In(zone), envelope.ErrExpired},
		{"before its expiry, in another zone", expiring, noon.Add(9 * time.Second).In(zone), nil},
		{"long after", expiring, noon.AddDate(100, 0, 0), envelope.ErrExpired},
		{"no expiry, long after", lasting, noon.AddDate(1000, 0, 0), nil},
		{"no expiry, from the future", lasting, noon.Add(-time.Hour), envelope.ErrInvalid},
		{"at no time at all", lasting, time.Time{}, envelope.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.ErrorIs(t, tt.e.Fresh(tt.at), tt.want)
		})
	}
}

// Requirement: G16.
func TestExpiryIsWallClock(t *testing.T) {
	t.Parallel()
	now := time.Now() // carries a monotonic reading, which stands still while a laptop sleeps
	h := full()
	h.CreatedAt, h.ExpiresAt = now, now.Add(10*time.Second)
	e := newEnvelope(t, h, envelope.Text("x"))
	require.NotContains(t, e.ExpiresAt().String(), "m=")
	require.NoError(t, e.Fresh(now), "the moment of its making")
	require.Contains(t, e.Header().CreatedAt.String(), "m=", "a clock that is set back does not make it come from the future")
	require.NoError(t, e.Fresh(now.Round(0).Add(9999*time.Millisecond)))
	require.ErrorIs(t, e.Fresh(now.Round(0).Add(10*time.Second)), envelope.ErrExpired)
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*envelope.Header)
	}{
		{"no id", func(h *envelope.Header) { h.ID = "" }},
		{"no producer", func(h *envelope.Header) { h.Producer = "" }},
		{"a level below public", func(h *envelope.Header) { h.Classification = label.Public - 1 }},
		{"a level above secret", func(h *envelope.Header) { h.Classification = label.Secret + 1 }},
		{"a trust above endorsed", func(h *envelope.Header) { h.Trust = label.Endorsed + 1 }},
		{"no creation time", func(h *envelope.Header) { h.CreatedAt = time.Time{} }},
		{"negative hops", func(h *envelope.Header) { h.Hops = -1 }},
		{"too many hops", func(h *envelope.Header) { h.Hops = envelope.MaxHops + 1 }},
		{"expiry at creation", func(h *envelope.Header) { h.ExpiresAt = h.CreatedAt }},
		{"expiry before creation", func(h *envelope.Header) { h.ExpiresAt = h.CreatedAt.Add(-1) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := full()
			tt.change(&h)
			e, err := envelope.New(h, envelope.Text("x"))
			require.ErrorIs(t, err, envelope.ErrInvalid)
			require.Nil(t, e)
		})
	}
}

func TestNewAcceptsTheEdges(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*envelope.Header){
		func(h *envelope.Header) { h.Classification = label.Public },
		func(h *envelope.Header) { h.Classification = label.Secret },
		func(h *envelope.Header) { h.Trust = label.Untrusted },
		func(h *envelope.Header) { h.Hops = 0 },
		func(h *envelope.Header) { h.Hops = envelope.MaxHops },
		func(h *envelope.Header) { h.ExpiresAt = h.CreatedAt.Add(1) },
		func(h *envelope.Header) { h.ExpiresAt = time.Time{} },
		func(h *envelope.Header) { h.Task, h.Run, h.DerivedFrom, h.Tags = "", "", nil, nil },
	} {
		h := full()
		change(&h)
		require.Equal(t, h, newEnvelope(t, h, envelope.Payload{}).Header())
	}
}

// Requirement: G15.
func TestZeroLabelIsInternal(t *testing.T) {
	t.Parallel()
	e := newEnvelope(t, envelope.Header{ID: "e", Producer: "a", CreatedAt: noon}, envelope.Text("x"))
	require.Equal(t, label.Internal, e.Classification())
	require.Equal(t, label.Untrusted, e.Trust())
	require.True(t, e.ExpiresAt().IsZero())
}

func TestAccessorsAgreeWithTheHeader(t *testing.T) {
	t.Parallel()
	e := newEnvelope(t, full(), envelope.Text("payload"))
	h := e.Header()
	require.Equal(t, h.ID, e.ID())
	require.Equal(t, h.Producer, e.Producer())
	require.Equal(t, h.Classification, e.Classification())
	require.Equal(t, h.Trust, e.Trust())
	require.Equal(t, h.ExpiresAt, e.ExpiresAt())
}
