package messagebus_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/messagebus"
)

func TestMessagesPrintWithoutTheirContent(t *testing.T) {
	t.Parallel()
	bus, err := messagebus.New([]string{"a", "b"}, messagebus.Options{Edges: []handoff.Edge{{From: "a", To: "b", Bidirectional: true}}})
	require.NoError(t, err)
	_, err = bus.Send("a", "b", "canary", envelope.Header{Classification: label.Secret})
	require.NoError(t, err)
	all, err := bus.All("b")
	require.NoError(t, err)
	data, err := json.Marshal(all)
	require.NoError(t, err)
	var text strings.Builder
	text.WriteString(string(data))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		text.WriteString(fmt.Sprintf(verb, all) + fmt.Sprintf(verb, &all[0]))
	}
	require.NotContains(t, text.String(), "canary")
	require.NotContains(t, text.String(), "63616e617279")
}

func TestSendTakesLabelAndExpiry(t *testing.T) {
	t.Parallel()
	bus, err := messagebus.New([]string{"a", "b"}, messagebus.Options{Edges: []handoff.Edge{{From: "a", To: "b", Bidirectional: true}}})
	require.NoError(t, err)
	expires := time.Now().Add(time.Hour).UTC()
	_, err = bus.Broadcast("a", "x", envelope.Header{Classification: label.Confidential, ExpiresAt: expires, Producer: "b", Trust: label.Endorsed})
	require.NoError(t, err)
	all, err := bus.All("b")
	require.NoError(t, err)
	h := all[0].Envelope.Header()
	require.Equal(t, label.Confidential, h.Classification)
	require.Equal(t, label.Untrusted, h.Trust, "the sender does not decide on trust")
	require.Equal(t, "a", h.Producer)
	require.True(t, expires.Equal(h.ExpiresAt))
	require.Equal(t, "*", all[0].To)
}

func TestUnreadableSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	for _, give := range []string{"", "{", `{"version": 2}`, `{"version": 1, "more": 1}`} {
		_, err := messagebus.FromSnapshot([]byte(give), []string{"a"}, messagebus.Options{})
		require.Error(t, err, give)
	}
	var none *messagebus.Bus
	_, err := none.Snapshot()
	require.ErrorIs(t, err, messagebus.ErrInvalid)
}
