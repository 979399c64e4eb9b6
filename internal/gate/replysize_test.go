package gate_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/gate"
)

// The size of a reply is what encoding/json writes of it.
func TestReplySizeIsThatOfJSON(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"a", "\x00", "\n\"\b\f\r\t", "<&>", "\u2028 \u2029", "\x7f", "\xff", "\xe2\x80", "é", "😀", `\`, "\ufffd"} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		require.NoError(t, e.Encode(unit))
		each := b.Len() - len("\"\"\n")
		n := (gate.MaxReply - 2) / each // so many just fit
		text := strings.Repeat(unit, n)
		c := newCompartment(t)
		_, _, err := c.GateInbound(gate.Reply{ID: "e", Text: text}, nil, nil, noon)
		require.NoError(t, err)
		c = newCompartment(t)
		_, d, err := c.GateInbound(gate.Reply{ID: "e", Text: text + unit}, nil, nil, noon)
		require.Error(t, err)
		require.Equal(t, gate.RuleReplySize, d.Rule)
	}
}
