package envelope_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/stretchr/testify/require"
)

// canary is in payloads that nothing may print.
const canary = "CANARY-7f3a"

// verbs that call Format; %T writes the type, and %p and %w of a struct are mistakes that vet reports.
var verbs = []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%T", "%08.3f", "%c", "%U", "%b", "%o", "%e", "%g", "%z"}

// hex is the canary as %x writes it.
var hex = fmt.Sprintf("%x", canary)

func requireNoCanary(t *testing.T, text string) {
	t.Helper()
	require.NotContains(t, text, canary)
	require.NotContains(t, text, hex)
	require.NotContains(t, text, fmt.Sprintf("%X", canary))
}

func secretEnvelope(t *testing.T) *envelope.Envelope {
	return newEnvelope(t, full(), structured(t, `{"k":"`+canary+`"}`).WithText(canary))
}

// Requirement: G42.
func TestNoVerbPrintsAPayload(t *testing.T) {
	t.Parallel()
	e := secretEnvelope(t)
	payload := e.Open()
	for _, value := range []any{
		e, *e, &e, []*envelope.Envelope{e}, []envelope.Envelope{*e}, map[string]envelope.Envelope{"k": *e},
		struct{ E *envelope.Envelope }{e}, struct{ E envelope.Envelope }{*e},
		struct{ e *envelope.Envelope }{e}, struct{ e envelope.Envelope }{*e}, // methods of unexported fields are not called
	} {
		for _, verb := range append(verbs, "%p", "%w") {
			requireNoCanary(t, fmt.Sprintf(verb, value))
		}
		requireNoCanary(t, fmt.Sprint(value))
		requireNoCanary(t, fmt.Errorf("%w: %v", envelope.ErrTampered, value).Error())
	}
	for _, value := range []any{payload, &payload, []envelope.Payload{payload}, struct{ P envelope.Payload }{payload}} {
		for _, verb := range verbs {
			requireNoCanary(t, fmt.Sprintf(verb, value))
		}
		requireNoCanary(t, fmt.Sprint(value))
		requireNoCanary(t, fmt.Errorf("%w: %v", envelope.ErrTampered, value).Error())
	}
	require.Equal(t, `envelope "e1" from "analyst", confidential`, fmt.Sprintf("%#v", e), "and yet it says which one")
	require.Equal(t, "payload", fmt.Sprint(payload), "nor how long it is")
}

// Requirement: G42.
func TestNoLogOrJSONShowsAPayload(t *testing.T) {
	t.Parallel()
	e := secretEnvelope(t)
	for _, value := range []any{e, *e, e.Open(), struct{ E *envelope.Envelope }{e}} {
		var text, js bytes.Buffer
		slog.New(slog.NewTextHandler(&text, nil)).Info("m", "e", value)
		slog.New(slog.NewJSONHandler(&js, nil)).Info("m", "e", value)
		requireNoCanary(t, text.String())
		requireNoCanary(t, js.String())
		raw, err := json.Marshal(value)
		require.NoError(t, err)
		requireNoCanary(t, string(raw))
	}
	raw, err := json.Marshal(e)
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"e1","producer":"analyst","task":"t1","run":"r1","classification":"confidential","trust":"endorsed",
		"createdAt":"2026-03-14T12:00:00Z","expiresAt":"2026-03-14T12:00:10Z","hops":3,"derivedFrom":["e0","i0"],"tags":["findings","score"]}`, string(raw))
	require.Contains(t, e.LogValue().String(), "analyst")
}

// Requirement: G42.
func TestErrorsShowNoPayload(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{canary, `{"` + canary + `":1,"` + canary + `":2}`, `["` + canary + `"`, `"` + canary + `" x`, `{"a": ` + canary + `}`, `"` + canary + `\ud800"`, `"` + canary + "\xff\""} {
		_, err := jsonvalue.Parse(raw)
		require.ErrorIs(t, err, jsonvalue.ErrInvalid)
		requireNoCanary(t, err.Error())
	}
}
