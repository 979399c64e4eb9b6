package prompt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/prompt"
)

// sealTurn seals a turn in which the agent called a tool for each result.
func (d *desk) sealTurn(n int, text string, results ...string) brief.Turn {
	calls := make([]string, len(results))
	for i := range results {
		calls[i] = fmt.Sprintf(`{"id":"call_%d_%d","name":"look","arguments":{"n":%d}}`, n-1, i+1, i)
	}
	said, err := jsonvalue.Parse(`{"calls":[` + strings.Join(calls, ",") + `]}`)
	require.NoError(d.t, err)
	t := brief.Turn{Number: n, Title: d.task.Title, Said: d.seal(handoff.Draft, "said", "writer", envelope.Text(text).WithStructured(said), "both")}
	for _, text := range results {
		t.Results = append(t.Results, d.seal(handoff.ToolResult, "", "tool:look", envelope.Text(text)))
	}
	t.Contract = d.gate.Contract
	return t
}

// bytesOf returns the size of messages as their limit counts it.
func bytesOf(messages []prompt.Message) (n int) {
	for _, m := range messages {
		n += len(m.Text)
		for _, c := range m.Calls {
			n += len(c.Arguments)
		}
	}
	return n
}

// Prompts are immutable, although those of a conversation share their messages: two turns that
// continue the same prompt do not see each other.
func TestConversationsDoNotShareTurns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := newDesk(t)
		first, _, err := prompt.Build(d.brief())
		require.NoError(t, err)
		prompts, want := []prompt.Prompt{first}, [][]prompt.Message{first.Messages()}
		for i := range rapid.IntRange(1, 20).Draw(t, "turns") {
			before := rapid.IntRange(0, len(prompts)-1).Draw(t, "before")
			turn := d.sealTurn(len(want[before])/2+2, fmt.Sprint("said ", i), fmt.Sprint("result ", i))
			next, _, err := prompt.Continue(prompts[before], &turn)
			require.NoError(t, err)
			messages := next.Messages()
			require.Equal(t, want[before], messages[:len(messages)-2])
			require.Equal(t, fmt.Sprint("said ", i), messages[len(messages)-2].Text)
			require.Contains(t, messages[len(messages)-1].Text, fmt.Sprint("result ", i))
			prompts, want = append(prompts, next), append(want, messages)
		}
		for i, p := range prompts {
			require.Equal(t, want[i], p.Messages())
		}
	})
}

// Turns only append, except where a conversation would exceed its limit: then the oldest
// results become one line each, and the first message, the words of the agent and the newest
// turn stay as they are.
func TestConversationsStayWithinTheirLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := newDesk(t)
		d.task.Description = strings.Repeat("d", rapid.IntRange(0, 3000).Draw(t, "description"))
		limit, hasFiles := rapid.IntRange(4<<10, 40<<10).Draw(t, "limit"), rapid.Bool().Draw(t, "files")
		current, _, err := prompt.Build(d.brief())
		require.NoError(t, err)
		for n := 2; n <= 12; n++ {
			var results []string
			for range rapid.IntRange(1, 3).Draw(t, "calls") {
				results = append(results, strings.Repeat("r", rapid.SampledFrom([]int{0, 1, 100, 1000, 3000, 12_000}).Draw(t, "result")))
			}
			turn := d.sealTurn(n, strings.Repeat("s", rapid.IntRange(0, 500).Draw(t, "said")), results...)
			turn.MaxBytes, turn.HasFiles = limit, hasFiles
			whole := turn
			whole.MaxBytes = brief.MaxBytes
			uncut, _, err := prompt.Continue(current, &whole)
			require.NoError(t, err)
			next, receipt, err := prompt.Continue(current, &turn)
			again, _, errAgain := prompt.Continue(current, &turn)
			require.Equal(t, err, errAgain)
			want := uncut.Messages()
			if err != nil {
				require.ErrorIs(t, err, brief.ErrTooLarge)
				smallest := bytesOf(want)
				for _, m := range want[:len(current.Messages())] {
					if m.Role == "tool" && !strings.HasPrefix(m.Text, "[result ") {
						smallest -= max(len(m.Text)-len("[result moved to history/step_001.json: up to 16 KiB]"), 0)
					}
				}
				require.Greater(t, smallest, limit, "moving results out would have been enough")
				return
			}
			require.Equal(t, next.Messages(), again.Messages())
			requireCompacted(t, want, next, len(current.Messages()), limit, hasFiles)
			requireTiles(t, receipt.Text, len(next.Added()), len(receipt.Sources))
			requireCompactionRecorded(t, current, next, receipt)
			current = next
		}
	})
}

// requireCompacted checks the messages of a turn against those of the turn without a limit.
func requireCompacted(t *rapid.T, want []prompt.Message, p prompt.Prompt, old, limit int, hasFiles bool) {
	got := p.Messages()
	require.Len(t, got, len(want))
	require.LessOrEqual(t, bytesOf(got), limit)
	moved, kept := 0, -1 // how many were moved out, and the oldest result that was not
	for i := range want {
		if got[i].Text == want[i].Text {
			if kept < 0 && want[i].Role == "tool" && i < old && len(want[i].Text) > 100 {
				kept = i
			}
			require.Equal(t, want[i], got[i])
			continue
		}
		moved++
		require.Equal(t, "tool", want[i].Role)
		require.Less(t, i, old, "the newest turn was shortened")
		require.Equal(t, -1, kept, "an older result was kept")
		line := `^\[result removed: up to (1|4|16) KiB\]$`
		if hasFiles {
			var turn, call int
			_, err := fmt.Sscanf(want[i].CallID, "call_%d_%d", &turn, &call)
			require.NoError(t, err)
			line = fmt.Sprintf(`^\[result moved to history/step_%03d.json: up to (1|4|16) KiB\]$`, turn)
		}
		require.Regexp(t, line, got[i].Text)
		require.Equal(t, want[i].CallID, got[i].CallID)
	}
	if bytesOf(want) <= limit {
		require.Zero(t, moved, "there was room")
	} else if kept >= 0 {
		require.LessOrEqual(t, bytesOf(got), limit/2)
	}
}

// requireCompactionRecorded checks that what a turn recorded is enough to get its messages from
// those of the turn before.
func requireCompactionRecorded(t *rapid.T, before, p prompt.Prompt, receipt *prompt.Receipt) {
	rebuilt := append([]prompt.Message{}, before.Messages()...)
	_, lines, _ := strings.Cut(p.Added(), "\n\n## moved out\n")
	for line := range strings.Lines(lines) {
		id, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		require.True(t, ok)
		for i := range rebuilt {
			if rebuilt[i].Role == "tool" && rebuilt[i].CallID == id {
				rebuilt[i].Text = text
			}
		}
	}
	require.Equal(t, rebuilt, p.Messages()[:len(rebuilt)])
	out := 0
	for _, r := range receipt.Text {
		if r.Part.String() == "withheld" {
			d := receipt.Sources[r.Source].Decision
			require.Equal(t, gate.RulePromptSize, d.Rule)
			require.Equal(t, handoff.ToolResult, d.Source.Kind)
			require.False(t, d.IsDelivered())
			out++
		}
	}
	require.Equal(t, strings.Count(lines, "\n")+min(len(lines), 1), out)
}

// requireTiles checks that ranges cover a text without a gap.
func requireTiles(t require.TestingT, ranges []prompt.Range, size, sources int) {
	end := int32(0)
	for _, r := range ranges {
		require.Equal(t, end, r.Start)
		require.Greater(t, r.End, r.Start)
		require.Less(t, int(r.Source), sources)
		end = r.End
	}
	require.Equal(t, size, int(end))
}
