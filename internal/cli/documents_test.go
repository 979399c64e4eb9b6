package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/explain"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/plan"
	"github.com/runteam/runteam/internal/cli/replay"
	"github.com/runteam/runteam/internal/cli/restored"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/workdir"
	"github.com/stretchr/testify/require"
)

// A storedDocuments reads documents of runs as the inspector does, without a command.
type storedDocuments struct {
	con   *console.Console
	flags *journals.Flags
	t     *testing.T
}

// documentsIn returns the documents of the runs in the journal of a folder.
func documentsIn(t *testing.T, dir string) *storedDocuments {
	t.Helper()
	con, _, _ := clitest.Console(t)
	con.WorkDir = workdir.Dir(dir)
	return &storedDocuments{con, &journals.Flags{Named: filepath.Join(dir, journals.FolderName, journals.FileName)}, t}
}

// load reads a run, the newest unless an ID is given.
func (s *storedDocuments) load(run string) *journals.StoredRun {
	s.t.Helper()
	j, _, err := journals.Open(s.con, s.flags, journals.ToRead)
	require.NoError(s.t, err)
	defer j.Close() //nolint:errcheck // nothing was written
	found, err := journals.Find(s.t.Context(), j, run)
	require.NoError(s.t, err)
	k, err := journals.Load(s.t.Context(), s.con, j, found, "")
	require.NoError(s.t, err)
	return k
}

func (s *storedDocuments) plan(k *journals.StoredRun) *engine.Plan {
	s.t.Helper()
	p, err := restored.Plan(s.t.Context(), s.con, s.flags, &k.Info, &k.History)
	require.NoError(s.t, err)
	return p
}

// asJSON returns a document as a client of the API gets it.
func asJSON(t *testing.T, document any) map[string]any {
	t.Helper()
	text, err := json.Marshal(document)
	require.NoError(t, err)
	return object(t, string(text)+"\n")
}

// runOf runs a spec offline and returns its folder.
func runOf(t *testing.T, example string) string {
	t.Helper()
	dir := copyOf(t, "../../examples/"+example)
	require.Contains(t, []int{exit.StatusOK, exit.StatusFailed}, offlineRun(t, call{dir: dir}).status)
	return dir
}

// The plan of a run of another program is unknown; so is that of a run whose spec cannot be read.
func TestRunsWithoutAPlan(t *testing.T) {
	t.Parallel()
	docs := documentsIn(t, runOf(t, "claims"))
	k := docs.load("")
	own := k.Info
	own.Invocation = nil
	_, err := restored.Plan(t.Context(), docs.con, docs.flags, &own, &k.History)
	var none *restored.NoPlanError
	require.ErrorAs(t, err, &none)
	require.ErrorContains(t, err, "was not begun by this command")
	own = k.Info
	own.Files = slices.Clone(own.Files)
	own.Files[0].Missing = "it is encrypted"
	_, err = restored.Plan(t.Context(), docs.con, docs.flags, &own, &k.History)
	require.ErrorAs(t, err, &none)
	require.ErrorContains(t, err, "it is encrypted")
	stopped, stop := context.WithCancel(t.Context())
	stop()
	_, err = restored.Plan(stopped, docs.con, docs.flags, &k.Info, &k.History)
	require.ErrorIs(t, err, context.Canceled)
}

// The flow of a stored run is that of `runteam plan`, whatever the files contain now. No endpoint read the prompts of an
// offline run.
func TestFlowOfARunIsThatOfItsPlan(t *testing.T) {
	t.Parallel()
	dir := runOf(t, "claims")
	docs := documentsIn(t, dir)
	planned := func(args ...string) map[string]any {
		got := call{dir: dir, args: append([]string{"plan", "-o", "json"}, args...)}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		return object(t, got.stdout)
	}
	all, some := planned(), planned("--from", "claim", "--to", "user")
	requireLastReader(t, all["flow"], "https://api.openai.com/v1")
	withoutLastReader(all["flow"])
	require.NoError(t, os.WriteFile(filepath.Join(dir, "team.yaml"), []byte("written since"), 0o600))
	p := docs.plan(docs.load(""))
	flow := func(from, to string) map[string]any {
		d, err := plan.FlowOf(p, from, to)
		require.NoError(t, err)
		return asJSON(t, d)
	}
	got := flow("", "")
	var assertions []any
	for _, of := range all["assertions"].([]any) {
		of := of.(map[string]any)
		assertion := of["assertion"].(map[string]any)
		one := map[string]any{"text": assertion["text"], "line": assertion["line"], "holds": of["holds"]}
		for _, name := range []string{"why", "path"} {
			if of[name] != nil {
				one[name] = of[name]
			}
		}
		assertions = append(assertions, one)
	}
	require.NotEmpty(t, assertions)
	require.Equal(t, assertions, got["assertions"])
	require.Equal(t, p.Roster().Rules.Digest(), got["policyDigest"])
	delete(got, "assertions")
	delete(got, "policyDigest")
	require.Equal(t, all["flow"], got)
	got = flow("claim", "user")
	delete(got, "assertions")
	delete(got, "policyDigest")
	require.Equal(t, some["flow"], got)
	_, err := plan.FlowOf(p, "clam", "")
	require.ErrorContains(t, err, `from "clam": no input and no task has this name; did you mean "claim"?`)
	_, err = plan.FlowOf(p, "", "usr")
	require.ErrorContains(t, err, `to "usr": no reader has this name`)
}

// What is shown of a run that a script answered names no model of its spec, but their prices apply.
func TestScriptIsShownAsTheModel(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"team.yaml": `offline: script.yaml
prices: {gpt-4o-mini: {input: 1, output: 2}}
tasks: [{title: Write, description: Write it.}]
agents: [{name: writer, model: gpt-4o-mini}]
`,
		"script.yaml": "replies: [{task: Write, text: Done.}]\n",
	})
	got := offlineRun(t, call{dir: dir})
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	run := documentsIn(t, dir).load("").Run
	for _, args := range [][]string{{"show", run}, {"show", run, "Write"}, {"show", run, "--usage"}, {"plan", "--run", run}} {
		for _, form := range []string{"text", "json"} {
			got := call{dir: dir, args: append(args, "-o", form)}.run(t)
			require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			shown := strings.ReplaceAll(got.stdout, `"prices":{"gpt-4o-mini":`, "")
			require.NotContains(t, shown, "gpt-4o-mini", "%v", args)
			require.NotContains(t, shown, "openai", "%v", args)
			require.NotContains(t, shown, "without a price", "%v", args)
		}
	}
}

// Each turn of a conversation takes until it ended, and the next one begins after it.
func TestTurnsHaveTheirOwnTimes(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, edits)
	require.Equal(t, exit.StatusOK, offlineRun(t, call{dir: dir}).status)
	got := call{dir: dir, args: []string{"show", documentsIn(t, dir).load("").Run, "Read", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	var shown struct {
		Exchanges []struct{ StartedAt, EndedAt time.Time }
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &shown))
	require.Len(t, shown.Exchanges, 2)
	require.False(t, shown.Exchanges[0].EndedAt.After(shown.Exchanges[1].StartedAt), "%+v", shown)
}

// requireLastReader checks the name of the last reader of a flow.
func requireLastReader(t *testing.T, flow any, name string) {
	t.Helper()
	readers := flow.(map[string]any)["readers"].([]any)
	require.Equal(t, name, readers[len(readers)-1].(map[string]any)["name"])
}

// withoutLastReader removes the last reader of a flow.
func withoutLastReader(flow any) {
	f := flow.(map[string]any)
	last := len(f["readers"].([]any)) - 1
	f["readers"] = f["readers"].([]any)[:last]
	for _, s := range f["sources"].([]any) {
		s := s.(map[string]any)
		s["reach"] = s["reach"].([]any)[:last]
		if wrote, ok := s["wrote"].([]any); ok {
			s["wrote"] = slices.DeleteFunc(wrote, func(r any) bool { return r == float64(last) })
		}
	}
}

func TestHandoffsOfARun(t *testing.T) {
	t.Parallel()
	docs := documentsIn(t, runOf(t, "claims"))
	k := docs.load("")
	total, seen, byTask := len(k.Trace.Handoffs), map[int]bool{}, explain.HandoffsByTask(k)
	for _, tk := range k.Trace.Tasks() {
		d, err := explain.HandoffsOf(k, tk.Title)
		require.NoError(t, err)
		require.Equal(t, d, byTask[tk.ID])
		for _, h := range d.Handoffs {
			require.True(t, h.Task == tk.ID || h.Handoff.Source.Name == string(tk.ID))
			require.Equal(t, k.Trace.Handoffs[h.Seq-1], h.Handoff)
			require.False(t, h.Time.IsZero())
			require.Equal(t, h.To != "user", h.Attempt == 1, "%+v", h)
			seen[h.Seq] = true
		}
	}
	require.Len(t, seen, total, "each decision is that of a task")
	first := k.Trace.Handoffs[0]
	d := explain.HandoffsBetween(k, first.From, first.To)
	require.NotEmpty(t, d.Handoffs)
	for _, h := range d.Handoffs {
		require.Equal(t, []string{first.From, first.To}, []string{h.From, h.To})
	}
	require.Empty(t, explain.HandoffsBetween(k, "none", "user").Handoffs)
	require.Contains(t, asJSON(t, explain.HandoffsBetween(k, "none", "user")), "handoffs")
	_, err := explain.HandoffsOf(k, "No such task")
	require.ErrorContains(t, err, `unknown task "No such task"`)
	var usage *exit.Error
	require.ErrorAs(t, err, &usage)
	require.Equal(t, exit.KindUsage, usage.Kind)
}

// pricedTwo is twoInTurn with prices, so that its costs differ from those of a longer answer.
const pricedTwo = twoInTurn + "prices: {m: {input: 1000, output: 1000}}\n"

func TestComparedRunsHaveCosts(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": pricedTwo, "long.yaml": "replies: [{text: A much longer answer than that of the other script.}]\n"})
	env := map[string]string{"KEY": "k"}
	require.Equal(t, exit.StatusOK, offlineRun(t, call{dir: dir, env: env}).status)
	require.Equal(t, exit.StatusOK, offlineRun(t, call{dir: dir, env: env}, "--script", "long.yaml").status)
	docs, list := documentsIn(t, dir), listRuns(t, call{dir: dir})
	before, after := docs.load(list[1].Run), docs.load(list[0].Run)
	d := replay.Compare(before, after)
	require.False(t, d.Equal)
	require.NotEqual(t, *d.Before.Cost, *d.After.Cost)
	require.NotZero(t, d.Before.Usage.InputTokens)
	for _, c := range d.Tasks {
		require.Equal(t, replay.Changed, c.Cost)
		require.NotEqual(t, *c.Before.Cost, *c.After.Cost)
	}
	got := call{dir: dir, args: []string{"replay", list[1].Run, "--diff", list[0].Run, "-o", "json"}}.run(t)
	require.Equal(t, object(t, got.stdout), asJSON(t, d))
	got = call{dir: dir, args: []string{"replay", list[1].Run, "--diff", list[0].Run}}.run(t)
	require.Regexp(t, `(?m)^task +status +label +prompt +result +tokens +cost$`, got.stdout)
	require.Contains(t, got.stdout, "$0.")

	same := replay.Compare(before, before)
	require.True(t, same.Equal)
	require.Equal(t, replay.Same, same.Tasks[0].Cost)

	env["MODEL"] = "without-a-price"
	require.Equal(t, exit.StatusOK, offlineRun(t, call{dir: dir, env: env}).status)
	none := replay.Compare(before, docs.load(listRuns(t, call{dir: dir})[0].Run))
	require.Nil(t, none.After.Cost)
	require.Equal(t, "none", none.Tasks[0].Cost)
}
