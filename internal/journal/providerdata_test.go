package journal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// signedBy is what a provider attached to a reply with one call. Its spaces, escapes and numbers must stay.
func signedBy(turn int) *llm.ProviderData {
	return &llm.ProviderData{
		Endpoint: "https://signer.example/v1", Model: "m",
		Message: json.RawMessage(fmt.Sprintf("{ \"thought\" : \"canary-thought <&> \\u00e9 \", \"n\": 1.50e+2, \"turn\":%d\n}", turn)),
		Calls:   []llm.ProviderCall{{ID: "canary-id-\xff", Members: json.RawMessage(`{"extra":"canary-extra"}`), Function: json.RawMessage(`{ "seal":"canary-seal" }`)}},
	}
}

// signedRun runs a conversation of three turns, whose agent dies in the last one, and closes the journal.
func signedRun(t *testing.T, path string, key []byte, effect tool.Options, sign func(turn int) *llm.ProviderData) {
	t.Helper()
	j, err := journal.Open(path, journal.Options{Key: key})
	require.NoError(t, err)
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
	require.NoError(t, err)
	ctx, kill := context.WithCancel(t.Context())
	_, err = signedTeam(t, effect, sign, func(turn int, _ []*llm.ProviderData) {
		if turn == 3 {
			kill()
		}
	}).RunTasks(ctx, signedTasks(), &engine.RunOptions{RunID: "r1", Journal: journaltest.Opened(r)})
	require.NoError(t, err)
	_, err = r.Close(t.Context())
	require.NoError(t, err)
	require.NoError(t, j.Close())
}

func signedTasks() []task.Spec {
	return []task.Spec{{Title: "a", Description: "A.", Assignee: "one"}}
}

// signedTeam is a team whose model signs its calls; asked is called with what came back in each turn.
func signedTeam(t *testing.T, effect tool.Options, sign func(turn int) *llm.ProviderData, asked func(turn int, came []*llm.ProviderData)) *engine.Team {
	t.Helper()
	look := &tool.Tool{Name: "look", Parameters: json.RawMessage(`{"type":"object"}`), Options: effect, Run: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Text: "a fact"}, nil }}
	m := llm.ModelFunc(func(ctx context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		var came []*llm.ProviderData
		for _, m := range r.Messages {
			if m.Role == llm.Assistant {
				came = append(came, m.Provider)
			}
		}
		turn := len(came) + 1
		asked(turn, came)
		switch {
		case ctx.Err() != nil:
			return llm.Response{}, context.Cause(ctx)
		case turn == 3:
			return llm.Response{Text: "done"}, nil
		}
		return llm.Response{ToolCalls: []llm.ToolCall{{Name: "look", Arguments: fmt.Sprintf(`{"n":%d}`, turn)}}, Provider: sign(turn)}, nil
	})
	tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "one", Agent: agent.New(m, agent.Options{Retry: llm.RetryOptions{Extra: -1}}), Tools: []*tool.Tool{look}, AllowUntrusted: []string{"look"}}}})
	require.NoError(t, err)
	return tm
}

// resumeSigned resumes the run and returns which turns were asked, what came back in the last, and how it ended.
func resumeSigned(t *testing.T, path string, key []byte, effect tool.Options) (asked []int, came []*llm.ProviderData, res *engine.Result) {
	t.Helper()
	j, err := journal.Open(path, journal.Options{Key: key})
	require.NoError(t, err)
	r, _, err := j.Resume(t.Context(), "r1")
	require.NoError(t, err)
	tm := signedTeam(t, effect, signedBy, func(turn int, of []*llm.ProviderData) { asked, came = append(asked, turn), of })
	res, err = tm.Resume(t.Context(), "r1", &engine.RunOptions{Journal: journaltest.Opened(r), Tasks: signedTasks()})
	require.NoError(t, err)
	_, err = r.Close(t.Context())
	require.NoError(t, err)
	require.NoError(t, j.Close())
	return asked, came, res
}

// A journal keeps what a provider needs back encrypted, byte for byte, and without a key not at all. A run
// that is resumed with the key continues its conversation; any other starts it over, or fails if an
// external call was made in it.
//
// Requirement: G64.
func TestJournalKeepsProviderDataEncrypted(t *testing.T) {
	t.Parallel()
	none := tool.Options{Effect: tool.None}
	ids := func(turn int) *llm.ProviderData {
		d := signedBy(turn)
		d.Message, d.Calls[0].Members, d.Calls[0].Function = nil, nil, nil
		return d
	}
	for name, tt := range map[string]struct {
		key, resume []byte
		effect      tool.Options
		sign        func(int) *llm.ProviderData
		asked       []int
		came        []*llm.ProviderData
		code        string
	}{
		"with the key":                 {oneKey, oneKey, none, signedBy, []int{3}, []*llm.ProviderData{signedBy(1), signedBy(2)}, ""},
		"with another key":             {oneKey, otherKey, none, signedBy, []int{1, 2, 3}, []*llm.ProviderData{signedBy(1), signedBy(2)}, ""},
		"without a key":                {nil, nil, none, signedBy, []int{1, 2, 3}, []*llm.ProviderData{signedBy(1), signedBy(2)}, ""},
		"external, with the key":       {oneKey, oneKey, tool.Options{}, signedBy, []int{3}, []*llm.ProviderData{signedBy(1), signedBy(2)}, ""},
		"external, without a key":      {nil, nil, tool.Options{}, signedBy, nil, nil, "EFFECTS_UNCERTAIN"},
		"IDs alone, without a key":     {nil, nil, tool.Options{}, ids, []int{3}, []*llm.ProviderData{nil, nil}, ""},
		"IDs alone, with the key":      {oneKey, oneKey, none, ids, []int{3}, []*llm.ProviderData{ids(1), ids(2)}, ""},
		"the first turn is not signed": {nil, nil, none, func(turn int) *llm.ProviderData { return map[int]*llm.ProviderData{2: signedBy(2)}[turn] }, []int{2, 3}, []*llm.ProviderData{nil, signedBy(2)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "runs.db")
			signedRun(t, path, tt.key, tt.effect, tt.sign)
			text := allText(t, path)
			require.Contains(t, text, `"callsTools":true`)
			requireNoCanaries(t, text)
			require.NotContains(t, text, "Y2FuYXJ5", "base64")
			require.NotContains(t, text, "signer.example")
			asked, came, res := resumeSigned(t, path, tt.resume, tt.effect)
			require.Equal(t, tt.asked, asked)
			require.Equal(t, tt.came, came)
			requireNoCanaries(t, allText(t, path))
			if tt.code != "" {
				require.Equal(t, tt.code, res.Tasks[0].Error.Code)
				return
			}
			require.NoError(t, res.Err())
			require.Equal(t, "done", res.Tasks[0].Result)
		})
	}
}

// What a provider needs back is bound to its turn and to the turn before: in a line that was altered, it is
// missing. No printed form of what is loaded has it.
func TestProviderDataBelongsToItsLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	signedRun(t, path, oneKey, tool.Options{Effect: tool.None}, signedBy)
	load := func() (list []*record.ProviderData) {
		j, err := journal.Open(path, journal.Options{Key: oneKey})
		require.NoError(t, err)
		stored, err := j.Load(t.Context(), "r1")
		require.NoError(t, err)
		for _, e := range stored.History.Log {
			for _, x := range []*record.AgentCall{e.Turn, e.Exchange} {
				if x != nil && x.Provider != nil {
					list = append(list, x.Provider)
					require.NotContains(t, fmt.Sprintf("%+v %v", *x.Provider, x.Provider.Data), "canary")
				}
			}
		}
		document, err := json.Marshal(stored.History.Log)
		require.NoError(t, err)
		require.NotContains(t, string(document), "canary")
		require.NoError(t, j.Close())
		return list
	}
	turns := load()
	require.Equal(t, []*llm.ProviderData{signedBy(1), signedBy(2)}, []*llm.ProviderData{turns[0].Data, turns[1].Data})
	require.Empty(t, turns[0].Before)
	require.True(t, strings.HasSuffix(turns[1].Before, "/1"), turns[1].Before)
	rewrite(t, path, func(line string) string {
		return strings.ReplaceAll(line, `"provider":{"before":"`+turns[1].Before, `"provider":{"before":"`+turns[1].Before+"0")
	})
	turns = load()
	require.NotNil(t, turns[0].Data)
	require.Equal(t, &record.ProviderData{Before: turns[1].Before}, turns[1])
}
