package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/runteam/runteam/internal/cli/view"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// tricky is a text that would deceive the reader of a terminal.
const tricky = "fine\x1b[2J\u202e\u2066\r\x00end"

// busy writes a run with every kind of event, and one from which it reuses a result.
func busy(t *testing.T, dir string) {
	t.Helper()
	j := openTest(t, dir, journal.Options{})
	w := beginRun(t, j, "earlier0-1", "n", "Taken")
	w.exchange("Taken", "priced", 1, func(x *record.AgentCall) {
		w.withText("taken", label.Public, 0)(x)
		x.Input, x.Output = 5000, 500
	})
	w.end("ok", completed("Taken"))

	w = beginRun(t, j, "later000-2", "busy", "Taken", "Tried "+tricky, "Cut", "Gone", "Hit", "Stale")
	w.info.Prices = json.RawMessage(`{"priced":{"input":2,"output":10}}`)
	require.NoError(t, w.run.Update(t.Context(), w.info))
	w.exchange("Taken", "priced", 1, func(x *record.AgentCall) {
		w.withText("taken", label.Public, 0)(x)
		x.From, x.Input, x.Output, x.Turns, x.SavedInput, x.SavedOutput = "earlier0-1", 0, 0, 0, 5000, 500
	})
	fails := func(message string) func(*record.AgentCall) {
		return func(x *record.AgentCall) { x.Code, x.Error = "TIMEOUT", message }
	}
	w.exchange("Tried "+tricky, "priced", 1, fails("too slow "+tricky))
	w.exchange("Tried "+tricky, "priced", 2, w.withText("result "+tricky+"\n"+strings.Repeat("line\n", 30)+"last", label.Confidential, 0))
	w.callStarted("Cut", "priced", 1, 4001)
	w.exchange("Cut", "other", 2, w.withText("done", label.Internal, 0))
	w.exchange("Gone", "other", 1, fails("no such thing"))
	w.exchange("Stale", "priced", 1, w.withText("EXPIRED-WORDS", label.Public, time.Hour))
	ended := []record.TaskEnd{completed("Taken"), completed("Tried " + tricky), completed("Cut"), completed("Stale")}
	ended = append(ended, record.TaskEnd{Task: task.NewID("Gone"), Title: "Gone", Agent: "solo", Status: task.Failed, Reason: "no such thing", Code: "TIMEOUT"})
	ended = append(ended, record.TaskEnd{Task: task.NewID("Hit"), Title: "Hit", Agent: "solo", Status: task.Failed, Reason: "Cancelled", Code: "DEPENDENCY_FAILED", Root: task.NewID("Gone")})
	w.end("error", ended...)
}

func TestShowPrintsEachTask(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	busy(t, dir)
	got := call{dir: dir, args: []string{"show"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Empty(t, got.stderr)
	for _, want := range []string{
		`^busy: run later000-2: error\nstarted .*, took 1m00s, `,
		`\ncompleted  Taken +solo  public .* reused from earlier0-1, saved 5,000 tokens in, 500 out\n`,
		`\ncompleted  Tried fine\\x1b\[2J\S* +solo  confidential +2\.0s  2,000 tokens in, 200 out +2 attempts\n`,
		`\ncompleted  Cut +solo  internal .* ~2,001 tokens in, 100 out  2 attempts; 1 interrupted\n`,
		`\nfailed +Gone .* no such thing\n`,
		`\nskipped +Hit .* because "Gone" failed\n`,
		`\n# Stale\n\n\[withheld: expired\]\n`,
		`\nline\n… 181 bytes in all: runteam show later000 ` + string(task.NewID("Tried "+tricky)) + `\n`,
	} {
		require.Regexp(t, want, got.stdout)
	}
	require.NotContains(t, got.stdout, "\nlast")
	requireHarmless(t, got.stdout)

	got = call{dir: dir, args: []string{"show", "later", "tried " + strings.ReplaceAll(tricky, "\x00", "")}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "an argument has no zero byte, so a title with one is named by its id")
	got = call{dir: dir, args: []string{"show", "later", string(task.NewID("Tried " + tricky))}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Regexp(t, `attempt 1 · solo · priced · failed · .* · 2\.0s · 1,000 tokens in, 100 out\n +TIMEOUT: too slow fine\\x1b`, got.stdout)
	require.Regexp(t, `attempt 2 · solo · priced · completed`, got.stdout)
	require.True(t, strings.HasSuffix(got.stdout, "line\nlast\n"), "the result is complete")
	requireHarmless(t, got.stdout)
}

func requireHarmless(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		require.True(t, r == '\n' || !unicode.Is(unicode.Cc, r) && !unicode.Is(unicode.Cf, r), "%q in %q", r, text)
	}
}

func TestShowInJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	busy(t, dir)
	got := call{dir: dir, args: []string{"show", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.NotContains(t, got.stdout, "EXPIRED-WORDS")
	requireHarmless(t, got.stdout)
	var r view.Run
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &r))
	require.Equal(t, "later000-2", r.ID)
	require.Equal(t, "error", r.Status)
	require.Len(t, r.Tasks, 6)
	require.Equal(t, "earlier0-1", r.Tasks[0].Reused.Run)
	require.Equal(t, 5000, r.Tasks[0].Reused.Saved.InputTokens)
	require.Equal(t, label.Public, *r.Tasks[0].Label)
	require.Nil(t, r.Tasks[3].Label, "there is no result")
	require.Contains(t, r.Tasks[1].Result, tricky, "a program reads what the agent wrote")
	require.Equal(t, 1, r.Tasks[2].Interrupted)
	require.Equal(t, &view.Error{Code: "TIMEOUT", Message: "no such thing"}, r.Tasks[3].Error)
	require.Equal(t, task.NewID("Gone"), r.Tasks[4].Error.Root)
	require.Empty(t, r.Tasks[1].Exchanges)

	got = call{dir: dir, args: []string{"show", "later", "Cut", "-o", "json"}}.run(t)
	var one view.Task
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &one))
	require.Len(t, one.Exchanges, 2)
	require.True(t, one.Exchanges[0].State == "interrupted" && one.Exchanges[0].Estimate || one.Exchanges[1].State == "interrupted" && one.Exchanges[1].Estimate)
}

func TestShowUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	busy(t, dir)
	got := call{dir: dir, args: []string{"show", "--usage", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	var b view.Usage
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &b))
	row := func(title, model string) *view.UsageRow {
		for _, r := range b.Rows {
			if r.Title == title && r.Model == model {
				return r
			}
		}
		t.Fatalf("no row of %s with %s", title, model)
		return nil
	}
	require.Zero(t, row("Taken", "priced").Usage)
	require.Equal(t, 5000, row("Taken", "priced").Saved.InputTokens)
	require.InDelta(t, 0.015, row("Taken", "priced").SavedCost, 1e-9)
	tried := row("Tried "+tricky, "priced")
	require.Equal(t, [3]int{2, 1, 2000}, [3]int{tried.Calls, tried.Failed, tried.Usage.InputTokens})
	require.InDelta(t, 2000*2e-6+200*10e-6, *tried.Cost, 1e-9)
	cut := row("Cut", "priced")
	require.Equal(t, [3]int{0, 1, 1001}, [3]int{cut.Calls, cut.Interrupted, cut.Usage.InputTokens}, "a fourth of the bytes")
	require.Nil(t, row("Cut", "other").Cost)
	require.Nil(t, b.Total.Cost, "models without a price are not included")
	require.Len(t, b.Models, 2)
	require.Len(t, b.Agents, 1)
	require.Equal(t, 6001, b.Total.Usage.InputTokens)

	got = call{dir: dir, args: []string{"show", "--usage"}}.run(t)
	require.Regexp(t, `\nCut +solo +priced +0 +~1,001 +0 +\$0\.0020 +1 interrupted, estimated\n`, got.stdout)
	require.Regexp(t, `\nCut +solo +other +1 +1,000 +100 +-\n`, got.stdout)
	require.Regexp(t, `\nsum: 5 calls, ~6,001 tokens in, 500 out, \$0\.0110 without other, for which there is no price; the tokens of 1 interrupted call are an estimate; 1 answer reused, saved 5,000 tokens in, 500 out \(\$0\.0150\)\n$`, got.stdout)
	requireHarmless(t, got.stdout)
}

func TestShowOfARunWithoutAnEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTest(t, dir, journal.Options{})
	w := beginRun(t, j, "cut00000-1", "n", "Done", "Open", "Waits")
	w.exchange("Done", "m", 1, w.withText("ready", label.Public, 0))
	w.callStarted("Open", "m", 1, 400)
	got := call{dir: dir, args: []string{"show"}}.run(t)
	require.Contains(t, got.stdout, "n: run cut00000-1: running\n")
	require.NotContains(t, got.stdout, "1 interrupted")
	w.end("")
	got = call{dir: dir, args: []string{"show"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, "n: run cut00000-1: interrupted\n")
	require.Contains(t, got.stdout, "to resume: runteam resume cut00000\n")
	require.Regexp(t, `\ncompleted +Done .*\ninterrupted +Open .* 1 interrupted\npending +Waits`, got.stdout)
}
