package gate_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// deliveredToUser returns what the gate delivers of a text to the caller.
func deliveredToUser(t require.TestingT, text string) string {
	now := time.Now()
	source := gate.Source{Kind: handoff.Dependency, Name: "t"}
	e, err := envelope.New(envelope.Header{ID: "t", Producer: "writer", Run: "r", Task: "t", CreatedAt: now}, envelope.Text(text))
	require.NoError(t, err)
	contract, err := gate.Negotiate(gate.Request{
		Session: "r/user", Caller: handoff.User, Run: "r", Task: "t", Classification: label.Confidential, Owned: true,
		Grants: []gate.Grant{{Source: source, Paths: []task.Path{task.Whole}}},
	}, &gate.Capabilities{Agent: handoff.User, Accepts: label.Confidential, Produces: label.Confidential})
	require.NoError(t, err)
	c := gate.Compartment{Contract: contract}
	offer := gate.Offer{Source: source, Status: task.Completed, Envelope: e, Optional: true, As: task.Output}
	d, err := c.Decide(t.(interface{ Context() context.Context }).Context(), &offer, now)
	require.NoError(t, err)
	payload, _, err := c.Payload(&offer, &d)
	require.NoError(t, err)
	return payload.Text()
}

// What a stream releases is the beginning of what the gate delivers, however the text arrives.
func TestTextStreamIsTheBeginningOfTheDelivery(t *testing.T) {
	t.Parallel()
	token := "ghp_" + strings.Repeat("aB3dE6gH9", 4)
	parts := []string{
		"```", "```json", "\n", " ", "{", "}", "[", "]", `"password": `, `"hunter22"`, "password: hunter22", token, "The river runs. ", "word", ",", "``",
		"-----BEGIN PRIVATE KEY-----\n", "MIIEvgIBADANBgkqhkiG9w0BAQEFAASC\n", "-----END PRIVATE KEY-----\n",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 14).Draw(t, "text"), "")
		s := gate.NewTextStream()
		released := ""
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			released, rest = released+s.Write(t.Context(), rest[:n]), rest[n:]
		}
		if want := deliveredToUser(t, text); !strings.HasPrefix(want, released) {
			t.Fatalf("%q was released, and %q is delivered", released, want)
		}
	})
}

func TestTextStreamHoldsValuesOnly(t *testing.T) {
	t.Parallel()
	prose := strings.Repeat("The river runs. ", 40)
	for text, released := range map[string]bool{
		prose:                          true,
		"\n" + prose:                   true,
		"```text\n" + prose:            true,
		"{" + prose:                    false,
		" \n[" + prose:                 false,
		"```json\n{\"a\": " + prose:    false,
		"Here it is: {\"a\": " + prose: true,
	} {
		s := gate.NewTextStream()
		var got strings.Builder
		for _, word := range strings.SplitAfter(text, " ") {
			got.WriteString(s.Write(t.Context(), word))
		}
		require.Equal(t, released, got.String() != "", "%q…", text[:20])
	}
}

// TestSpacesInPieces checks that a model which writes spaces, one at a time, costs no more for each of them the more
// there are: these took a quarter of an hour, and a reply may have 4 MiB.
func TestSpacesInPieces(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"", "```json"} {
		s := gate.NewTextStream()
		require.Empty(t, s.Write(t.Context(), before))
		for range 1 << 17 {
			if s.Write(t.Context(), "\n") != "" {
				t.Fatal("it may be a value")
			}
		}
		require.Empty(t, s.Write(t.Context(), "{"), "it is one")
		require.Empty(t, s.Write(t.Context(), "The river runs. The river runs. The river runs. "))
	}
}
