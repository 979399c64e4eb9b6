package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/inspector/page"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/promptview"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// writtenExport returns the export of a run that a test writes.
func writtenExport(t *testing.T, write func(*writtenRun), titles ...string) *page.ExportDocument {
	t.Helper()
	dir := t.TempDir()
	j := openTest(t, dir, journal.Options{})
	write(beginRun(t, j, "abcd1111", "n", titles...))
	require.NoError(t, j.Close())
	return collected(t, dir, nil)
}

// textInPieces is a text with personal data, cut anywhere.
var textInPieces = rapid.Custom(func(t *rapid.T) (words []string) {
	parts := rapid.SliceOf(rapid.SampledFrom([]string{"Mail to ", "ann@example.org", " and pay ", "DE89 3704 0044 0532 0130 00", ", or call ", "+44 20 7946 0958", ".\n", "é", ""})).Draw(t, "parts")
	for rest := strings.Join(parts, ""); rest != ""; {
		n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
		for n < len(rest) && rest[n]&0xc0 == 0x80 {
			n++ // a prompt is cut between characters
		}
		words, rest = append(words, rest[:n]), rest[n:]
	}
	return words
})

// However a text is cut into pieces, they are redacted as the text is, and nothing of a value is left in any.
func TestPiecesAreRedactedAsOneText(t *testing.T) {
	t.Parallel()
	var texts [][]string
	run := writtenExport(t, func(w *writtenRun) {
		for i := range 200 {
			words := textInPieces.Example(i)
			texts = append(texts, words)
			shown := &promptview.Shown{Receipt: &prompt.Receipt{Run: "abcd1111", Session: "abcd1111/" + string(task.NewID("One")) + "/1", Task: task.NewID("One"), Agent: "solo", Sources: []prompt.Source{{Spec: "team.yaml:1", Producer: "user"}}}}
			at := int32(0)
			for _, text := range words {
				shown.Text = append(shown.Text, promptview.Piece{Range: prompt.Range{Start: at, End: at + int32(len(text)), Part: brief.PartDescription}, Words: text})
				at += int32(len(text))
			}
			w.add(record.Entry{Record: &record.Prompt{Prompt: shown}})
		}
		w.end("ok", completed("One"))
	}, "One")
	var receipts struct {
		Prompts []struct{ Text []struct{ Words string } }
	}
	require.NoError(t, json.Unmarshal(run.Documents["/runs/abcd1111/receipts"], &receipts))
	require.Len(t, receipts.Prompts, len(texts))
	redactor, redacted := redact.All(), 0
	for i, p := range receipts.Prompts {
		require.Len(t, p.Text, len(texts[i]))
		var got strings.Builder
		for _, piece := range p.Text {
			got.WriteString(piece.Words)
		}
		want, counts, err := redactor.Text(strings.Join(texts[i], ""))
		require.NoError(t, err)
		require.Equal(t, want, got.String(), "%q", texts[i])
		redacted += counts.Total()
	}
	require.Greater(t, redacted, 100)
}

// A text is redacted as what it is: JSON by the names of its members, and identifiers and times not at all.
func TestExportsCleanEachFormOfText(t *testing.T) {
	t.Parallel()
	texts := map[string]string{
		"Mail ann@example.org.":                               "Mail [REDACTED:email].",
		`{"note": "x", "password": "correct horse"}`:          `{"note":"x","password":"[REDACTED:password]"}`,
		`{"note": "as it is"}`:                                `{"note": "as it is"}`,
		"[envelope 0f3a77 from \"a\"] and [/envelope 0f3a77]": "[envelope ****** from \"a\"] and [/envelope ******]",
		"f4df1e63-54db-5a4c-a0a1-4477bdda7c66":                "f4df1e63-54db-5a4c-a0a1-4477bdda7c66",
		"2026-03-01T12:00:00.123456789Z":                      "2026-03-01T12:00:00.123456789Z",
	}
	var titles, gives []string
	for give := range texts {
		gives = append(gives, give)
		titles = append(titles, "Task "+string(rune('A'+len(titles))))
	}
	run := writtenExport(t, func(w *writtenRun) {
		var ends []record.TaskEnd
		for i, title := range titles {
			w.exchange(title, "m", 1, w.withText(gives[i], label.Public, 0))
			ends = append(ends, completed(title))
		}
		w.exchange("Structured", "m", 1, func(x *record.AgentCall) {
			payload, err := envelope.Structured(`{"n":1,"password":"abc"}`)
			require.NoError(t, err)
			e, err := envelope.New(envelope.Header{ID: envelope.ID(x.Session), Producer: "solo", Run: "abcd1111", Task: x.Task, Classification: label.Public, CreatedAt: clitest.Noon}, payload)
			require.NoError(t, err)
			result := e.Record()
			x.Result = &result
		})
		w.callStarted("Interrupted", "m", 1, 4000)
		w.end("canceled", append(ends, completed("Structured"))...)
	}, append(titles, "Structured", "Interrupted")...)
	of := func(title string) string {
		return string(run.Documents["/runs/abcd1111/tasks/"+string(task.NewID(title))])
	}
	for i, title := range titles {
		require.Equal(t, texts[gives[i]], object(t, of(title)+"\n")["result"])
	}
	require.Contains(t, of("Structured"), `"structured":{"n":1,"password":"[REDACTED:password]"}`)
	require.Contains(t, of("Interrupted"), `"estimated":true`)
	require.NotContains(t, of("Interrupted"), "tokenUsage", "estimated by the length of the prompt")
}

// Paths of the spec say nothing about the computer: neither that of the file, nor those of its lines, alone and in the
// names of sources.
func TestExportsHaveNoFolders(t *testing.T) {
	t.Parallel()
	dir := copyOf(t, "../../examples/claims")
	got := call{dir: dir, args: []string{"run", filepath.Join(dir, "team.yaml"), "--offline", "-o", "json"}}.run(t)
	require.Contains(t, []int{exit.StatusOK, exit.StatusFailed}, got.status, "%+v", got)
	run := collected(t, dir, nil)
	text, err := json.Marshal(run.Documents)
	require.NoError(t, err)
	require.Zero(t, strings.Count(string(text), dir))
	require.Contains(t, string(text), `"spec":"team.yaml"`)
	require.Contains(t, string(text), `"line":"team.yaml:`)
	require.Regexp(t, `"from":"team\.yaml:\d+ description"`, string(text))
	require.Regexp(t, `"from":"[^"]*, dependsOn \(team\.yaml:\d+\)`, string(text))
}
