package mailbox_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/label"
)

// canary stands in messages that nothing may print.
const canary = "CANARY-7f3a"

func requireNoCanary(t *testing.T, text string) {
	t.Helper()
	for _, form := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary), fmt.Sprint([]byte(canary))} {
		require.NotContains(t, text, form)
	}
}

// verbs that call Format; %T writes the type.
var verbs = []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%T", "%08.3f", "%c", "%U", "%b", "%o", "%e", "%g", "%z"}

// Requirement: G42.
func TestNothingPrintsContent(t *testing.T) {
	t.Parallel()
	draft := mailbox.Draft{From: "analyst", To: "writer", Content: canary, Classification: label.Secret}
	b := newBus(t, mailbox.Options{})
	_, err := b.Send(draft)
	require.NoError(t, err)
	m := unread(t, b, "writer")[0]
	s := b.Snapshot()
	for _, value := range []any{
		m, &m, []mailbox.Message{m}, map[string]mailbox.Message{"k": m}, struct{ M mailbox.Message }{m},
		struct{ m mailbox.Message }{m}, // methods of unexported fields are not called
		draft, &draft, []mailbox.Draft{draft}, struct{ D mailbox.Draft }{draft},
		s, &s, s.Messages, s.Messages[0], &s.Messages[0], struct{ S mailbox.Snapshot }{s}, b,
	} {
		for _, verb := range verbs {
			requireNoCanary(t, fmt.Sprintf(verb, value))
		}
		requireNoCanary(t, fmt.Sprint(value))
		requireNoCanary(t, fmt.Errorf("%w: %v", mailbox.ErrInvalid, value).Error())
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("m", "v", value)
		requireNoCanary(t, log.String())
	}
	for _, value := range []any{m, &m, []mailbox.Message{m}, draft, &draft, struct{ D mailbox.Draft }{draft}, s, s.Messages[0]} {
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", value)
		requireNoCanary(t, log.String())
	}
}

// Requirement: G42.
func TestMessagesPrintWithoutContent(t *testing.T) {
	t.Parallel()
	draft := mailbox.Draft{From: "analyst", To: "writer", Content: canary, Classification: label.Secret}
	b := newBus(t, mailbox.Options{})
	_, err := b.Send(draft)
	require.NoError(t, err)
	m, s := unread(t, b, "writer")[0], b.Snapshot()
	require.Equal(t, `message "message/1" from "analyst" to "writer", secret`, fmt.Sprintf("%#v", m))
	require.Equal(t, `draft from "analyst" to "writer", secret`, fmt.Sprint(draft))
	require.Equal(t, `snapshot version 1, 1 messages`, fmt.Sprint(s))
	require.Equal(t, `stored message "message/1" from "analyst" to "writer", secret`, fmt.Sprint(s.Messages[0]))
	require.Equal(t, `message "" from "" to "", internal`, fmt.Sprint(mailbox.Message{}))

	data, err := json.Marshal(m)
	require.NoError(t, err)
	require.JSONEq(t, `{"id": "message/1", "from": "analyst", "to": "writer", "classification": "secret"}`, string(data))
	data, err = json.Marshal(draft)
	require.NoError(t, err)
	require.JSONEq(t, `{"from": "analyst", "to": "writer", "classification": "secret"}`, string(data))

	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "m", m, "d", draft, "s", s)
	require.Contains(t, log.String(), `m.id=message/1 m.from=analyst m.to=writer m.classification=secret`)
	require.Contains(t, log.String(), `d.from=analyst d.to=writer d.classification=secret`)
	require.Contains(t, log.String(), `s="snapshot version 1, 1 messages"`)
}

// Requirement: G42.
func TestErrorsShowNoContent(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{MaxUnread: 1})
	send(t, b, user, "writer", "x")
	for _, d := range []mailbox.Draft{
		{From: user, To: "writer", Content: canary},
		{From: user, To: "scorer", Content: canary + "\xff"},
		{From: user, To: "nobody", Content: canary, Classification: 9, TTL: -1},
	} {
		_, err := b.Send(d)
		require.Error(t, err)
		requireNoCanary(t, err.Error())
		_, err = b.Broadcast(d)
		require.Error(t, err)
		requireNoCanary(t, err.Error())
	}
}
