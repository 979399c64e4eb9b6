package journal

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
)

// An answer that was altered in the file is not used.
func TestAlteredAnswerIsNotRead(t *testing.T) {
	t.Parallel()
	j := InMemory(Options{})
	defer j.Close() //nolint:errcheck // it ends with the test
	e, d := &encoder{run: "r", vault: j.vault}, &decoder{run: "r", vault: j.vault}
	given := &record.Answer{Session: "r/t/1", Task: "t", Title: "T", Agent: "editor", By: "ann", Time: time.Now(), Reason: "because", Label: label.Confidential, Key: record.Key{1}, Text: "send"}
	line, err := e.answer(given)
	require.NoError(t, err)
	raw, err := json.Marshal(line)
	require.NoError(t, err)
	got, err := d.answer(raw)
	require.NoError(t, err)
	require.Equal(t, "send", got.Text)
	require.Empty(t, got.Missing)
	require.Equal(t, given.Key, got.Key)
	for _, change := range [][2]string{{`"send"`, `"stop"`}, {`"ann"`, `"bob"`}, {`"because"`, `"why"`}, {"r/t/1", "r/t/2"}, {`"key":"01`, `"key":"02`}, {`"editor"`, `"editor2"`}} {
		altered := strings.Replace(string(raw), change[0], change[1], 1)
		require.NotEqual(t, string(raw), altered, change[0])
		got, err := d.answer([]byte(altered))
		require.NoError(t, err)
		require.Equal(t, ErrAltered.Error(), got.Missing, change[0])
		require.Empty(t, got.Text)
	}
	other, err := (&decoder{run: "r2", vault: j.vault}).answer(raw)
	require.NoError(t, err)
	require.NotEmpty(t, other.Missing, "an answer is for its run")
}
