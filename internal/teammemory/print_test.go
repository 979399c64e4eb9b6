package teammemory_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/teammemory"
)

// TestNoVerbPrintsEntries checks that entries, stores, memories and
// handles format, log and marshal without what envelopes hold.
//
// Requirement: G42.
func TestNoVerbPrintsEntries(t *testing.T) {
	t.Parallel()
	const canary = "CANARY-7f3a"
	store := teammemory.NewMapStore()
	m := teammemory.New(store)
	e := said(t, "ana", "t1", structured(t, `{"k":"`+canary+`"}`).WithText(canary))
	require.NoError(t, m.Writer().WriteResult(t.Context(), "ana", e, 0))
	list, err := m.Reader().Entries(t.Context(), teammemory.Everything())
	require.NoError(t, err)
	require.Contains(t, text(list[0]), canary, "it is there")
	hidden := []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary)}
	for _, value := range []any{
		list[0], &list[0], list, m, store, m.Writer(), m.Reader(), teammemory.Everything(),
		struct{ E teammemory.Entry }{list[0]}, struct{ e teammemory.Entry }{list[0]}, struct{ M *teammemory.Memory }{m},
	} {
		var printed bytes.Buffer
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%c", "%U", "%b", "%e", "%p", "%z"} {
			fmt.Fprintf(&printed, verb, value)
		}
		slog.New(slog.NewTextHandler(&printed, nil)).Info("m", "e", value)
		slog.New(slog.NewJSONHandler(&printed, nil)).Info("m", "e", value)
		if data, err := json.Marshal(value); err == nil { // a filter has no JSON
			printed.Write(data)
		}
		for _, text := range hidden {
			require.NotContains(t, printed.String(), text)
		}
	}
}

// Requirement: G42.
func TestErrorsDoNotQuoteRefusedEntries(t *testing.T) {
	t.Parallel()
	const canary = "CANARY-7f3a"
	m := teammemory.New(nil)
	for _, err := range []error{
		m.Writer().Write(t.Context(), "bob", "k", said(t, "ana", "", envelope.Text(canary)), 0),
		m.Writer().Write(t.Context(), "ana", "", said(t, "ana", "", envelope.Text(canary)), 0),
		m.Writer().WriteResult(t.Context(), "ana", said(t, "ana", "", envelope.Text(canary)), 0),
	} {
		require.ErrorIs(t, err, teammemory.ErrInvalid)
		require.NotContains(t, err.Error(), canary)
	}
}
