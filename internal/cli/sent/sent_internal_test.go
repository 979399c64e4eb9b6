package sent

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheSenderGetsTheReply(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]*Response{
		`{"expectation":"required","timeoutMs":5}`: {"required", "reporter"},
		`"optional"`: {"optional", "reporter"},
		``:           nil,
		`[]`:         nil,
	} {
		require.Equal(t, want, responseOf(json.RawMessage(asked), "reporter"), asked)
	}
}

func TestPlacesOfSessions(t *testing.T) {
	t.Parallel()
	for session, want := range map[string][2]int{"r/t/1": {1, 1}, "r/t/2/turn/3": {2, 3}, "r/t/1/minimal": {1, 1}, "r/u/1": {0, 0}, "r/user": {0, 0}} {
		attempt, turn := placeOf("r", "t", session)
		require.Equal(t, want, [2]int{attempt, turn}, session)
	}
}
