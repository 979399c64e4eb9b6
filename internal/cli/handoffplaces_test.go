package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/sent"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A handoff has the attempt and the turn that sent it, and its sender gets the reply. A program may send any value.
func TestHandoffsHaveTheirPlaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTest(t, dir, journal.Options{})
	w := beginRun(t, j, "abcd1111", "n", "One")
	one := "abcd1111/" + string(task.NewID("One")) + "/"
	sentBy := []struct{ session, structured string }{
		{one + "1", `{"response":{"expectation":"required","timeoutMs":5}}`},
		{one + "2/turn/3", `{"response":"optional"}`},
		{one + "1/minimal", `{"structured":{"n":1}}`},
		{"abcd1111/" + string(task.NewID("Other")) + "/1", `{"response":[]}`},
		{"abcd1111/user", `[1]`},
	}
	for i, of := range sentBy {
		id := string(rune('a' + i))
		payload, err := envelope.Structured(of.structured)
		require.NoError(t, err)
		e, err := envelope.New(envelope.Header{ID: envelope.ID(id), Producer: "reporter", Run: "abcd1111", Classification: label.Public, CreatedAt: clitest.Noon}, payload.WithText("Hello."))
		require.NoError(t, err)
		message := e.Record()
		w.add(record.Entry{Sent: &record.SentMessage{ID: id, From: "reporter", To: "editor", Session: of.session, Time: clitest.Noon, Shown: true, Message: &message}})
	}
	w.end("ok", completed("One"))
	require.NoError(t, j.Close())
	got := call{dir: dir, args: []string{"show", "--handoffs", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	var doc sent.Document
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &doc))
	require.Len(t, doc.Handoffs, len(sentBy))
	for i, want := range []struct {
		attempt, turn int
		response      *sent.Response
		structured    string
	}{
		{1, 1, &sent.Response{Expectation: "required", ReplyTo: "reporter"}, ""},
		{2, 3, &sent.Response{Expectation: "optional", ReplyTo: "reporter"}, ""},
		{1, 1, nil, `{"n":1}`},
		{0, 0, nil, ""},
		{0, 0, nil, `[1]`},
	} {
		h := &doc.Handoffs[i]
		require.Equal(t, []int{want.attempt, want.turn}, []int{h.Meta.Attempt, h.Meta.Turn}, sentBy[i])
		require.Equal(t, want.response, h.Payload.Response, sentBy[i])
		require.Equal(t, want.structured, string(h.Payload.Structured), sentBy[i])
	}
}
