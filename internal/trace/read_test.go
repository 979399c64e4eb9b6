package trace_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/promptview"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
)

const head = `{"trace":{"version":1,"run":"r1"}}` + "\n"

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	const receipt = `"receipt":{"session":"r1/t/1","task":"t","agent":"a","classification":"public","text":[{"start":0,"end":3,"source":0,"part":"payload"}],"sources":[{"producer":"b","classification":"secret"}]},"agent":"a"`
	tests := []struct {
		name, give, want string
	}{
		{"nothing", "", "line 1: the file has no complete line"},
		{"a head that was cut off", `{"trace":{"ver`, "line 1: the file has no complete line"},
		{"no JSON", "agents: []\n", "line 1: it is not a JSON object"},
		{"no object", head + "[1]\n", "line 2: it is not a JSON object"},
		{"an empty line", head + "\n", "line 2: it is not a JSON object"},
		{"something else", `{"agents": []}` + "\n", `line 1: the file does not begin with "trace"`},
		{"no version", `{"trace":{"run":"r1"}}` + "\n", "line 1: its head names no version"},
		{"a newer version", `{"trace":{"version":2,"novelty":1}}` + "\n", "line 1: it was written by a newer runteam, in version 2 of the form; this one reads version 1"},
		{"an unknown key in the head", `{"trace":{"version":1,"colour":"red"}}` + "\n", `line 1: its head cannot be read: json: unknown field "colour"`},
		{"company of the head", `{"trace":{"version":1},"event":{}}` + "\n", "line 1: its line has more than the head"},
		{"two traces", head + head, "line 2: a second head"},
		{"an unknown kind", head + `{"novelty":1}` + "\n", `line 2: its kind "novelty" is unknown; was it written by a newer runteam?`},
		{"two kinds", head + `{"event":{},"prompt":{}}` + "\n", "line 2: it has 2 kinds where one belongs"},
		{"an unknown key in an event", head + `{"event":{"seq":1,"mood":"good"}}` + "\n", `unknown field "mood"`},
		{"a prompt without a receipt", head + `{"prompt":{"agent":"a"}}` + "\n", "its prompt has no receipt"},
		{"words that are withheld", head + `{"prompt":{` + receipt + `,"text":[{"start":0,"end":3,"source":0,"part":"payload","withheld":true,"words":"key"}]}}` + "\n", "do not fit together"},
		{"words of another length", head + `{"prompt":{` + receipt + `,"text":[{"start":0,"end":3,"source":0,"part":"payload","words":"keys"}]}}` + "\n", "do not fit together"},
		{"a gap", head + `{"prompt":{` + receipt + `,"text":[{"start":1,"end":3,"source":0,"part":"payload","words":"ey"}]}}` + "\n", "do not fit together"},
		{"no such source", head + `{"prompt":{` + strings.Replace(receipt, `"source":0`, `"source":1`, 1) + `,"text":[{"start":0,"end":3,"source":1,"part":"payload","words":"key"}]}}` + "\n", "do not fit together"},
		{"a result that is none", head + `{"result":null}` + "\n", "its result cannot be read"},
		{"something after the result", head + `{"result":{}}` + "\n" + `{"event":{"seq":1}}` + "\n", `"event" after the result`},
		{"a decision that is none", head + `{"audit":{"handoff":{"verdict":"perhaps"}}}` + "\n", `unknown verdict "perhaps"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := trace.Read(strings.NewReader(tt.give))
			require.ErrorIs(t, err, trace.ErrFormat)
			require.ErrorContains(t, err, tt.want)
		})
	}
	broken := errors.New("broken disk")
	_, err := trace.Read(iotest.ErrReader(broken))
	require.ErrorIs(t, err, broken)
	require.NotErrorIs(t, err, trace.ErrFormat)
}

// A crash can end the file anywhere: what stands before is read, and that the
// last line is not whole is said.
func TestTornTraceIsReadUpToTheTear(t *testing.T) {
	t.Parallel()
	file, _ := tell(t)
	first := bytes.IndexByte(file, '\n') + 1
	result := bytes.LastIndexByte(file[:len(file)-1], '\n') // its end; the closing line of the chain comes after it
	for cut := first; cut < len(file)-1; cut += 97 {
		tr, err := trace.Read(bytes.NewReader(file[:cut]))
		require.NoError(t, err)
		whole := file[cut-1] == '\n' || file[cut] == '\n'
		require.Equal(t, !whole, tr.Torn, "cut at %d", cut)
		require.Equal(t, cut >= result, tr.Ended())
	}
}

// A piece above the clearance of the viewer has a source and a label, and
// no length.
//
// Requirement: G50.
func TestWithheldPieceHasNoWordsInTheFile(t *testing.T) {
	t.Parallel()
	file, _ := tell(t)
	require.NotContains(t, string(file), canary)
	require.NotContains(t, string(file), "on the list")
	p := read(t, file).Prompts[2]
	require.Equal(t, 1, p.Withheld(), "the payload")
	for _, piece := range p.Text {
		if piece.Withheld && piece.Part == brief.PartPayload {
			require.Equal(t, piece.Start, piece.End)
			require.Equal(t, "security", p.Receipt.Sources[piece.Source].Producer)
			require.EqualValues(t, "dependsOn", p.Receipt.Sources[piece.Source].Decision.Rule)
		}
	}
}

// What is above the caller's clearance is in no line of a trace, whatever the
// record holds.
//
// Requirement: G42.
func TestTraceHoldsTheGatedForm(t *testing.T) {
	t.Parallel()
	file, _ := tell(t)
	require.NotContains(t, string(file), canary)
	require.NotContains(t, string(file), token)
	for _, name := range []string{canary, token, "is on the list"} {
		require.Empty(t, read(t, file).Contains(name).Occurrences)
	}
	require.Contains(t, string(file), `[REDACTED:token]`, "the prompt is as the gate let it through")
}

// Whatever is read tiles, and can be searched.
func requireSound(t require.TestingT, tr *trace.Trace) {
	for i := range tr.Prompts {
		p := &tr.Prompts[i]
		for _, pieces := range [][]promptview.Piece{p.System, p.Text} {
			end := int32(0)
			for _, piece := range pieces {
				require.Equal(t, end, piece.Start)
				require.True(t, piece.Withheld && piece.Words == "" || len(piece.Words) == int(piece.End-piece.Start))
				end = piece.End
			}
		}
		tr.Absent(p, 0)
		tr.Withheld(p.Receipt.Task)
	}
	for _, o := range tr.Contains("a").Occurrences {
		require.Less(t, o.Start, o.End)
	}
	_, _ = tr.Find("facts")
}

func FuzzRead(f *testing.F) {
	file, err := os.ReadFile("testdata/claims.jsonl")
	require.NoError(f, err)
	f.Add(file)
	f.Add([]byte(head))
	f.Add([]byte(head + `{"prompt":{"receipt":{"session":"r1/t/1","task":"t","agent":"a","classification":"public","text":[{"start":0,"end":1,"source":-1,"part":"frame"}],"sources":null},"agent":"a","text":[{"start":0,"end":1,"source":-1,"part":"frame","words":"a"}]}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if tr, err := trace.Read(bytes.NewReader(data)); err == nil {
			requireSound(t, tr)
		}
	})
}

// Any line but the result can be lost or doubled without harm to the reader.
func TestReadSurvivesLostAndRepeatedLines(t *testing.T) {
	t.Parallel()
	file, _ := tell(t)
	lines := strings.SplitAfter(strings.TrimSuffix(string(file), "\n"), "\n")
	rapid.Check(t, func(t *rapid.T) {
		var out strings.Builder
		out.WriteString(lines[0])
		for _, i := range rapid.SliceOf(rapid.IntRange(1, len(lines)-3)).Draw(t, "lines") {
			out.WriteString(lines[i])
		}
		tr, err := trace.Read(strings.NewReader(out.String()))
		require.NoError(t, err)
		requireSound(t, tr)
	})
}

// An endless reader counts what is read of it.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	if e.read += len(p); e.read > 4*record.MaxLine {
		return 0, errors.New("it was read on and on")
	}
	clear(p)
	return len(p), nil
}

// A line without an end, as that of a device, is refused after the most bytes
// that a line may have.
func TestLineWithoutEndIsRefused(t *testing.T) {
	t.Parallel()
	in := &endless{}
	_, err := trace.Read(in)
	require.ErrorIs(t, err, trace.ErrFormat)
	require.ErrorContains(t, err, "line 1: it is longer than 16777216 bytes")
	require.Less(t, in.read, 2*record.MaxLine)
}
