// Package same_test builds the command of an earlier commit and that of this one, and compares what both print: the plan
// and the prompts of each example, and how they show and resume each recorded run, cut off after each of its batches.
package same_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/runteam/runteam/internal/slowtest"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"
)

// before is the commit to compare with.
const before = "51bc824c4ab4da032143ec81c536199c78dfc1a3"

// An intended difference is taken out of what both commands print before it is compared.
type intended struct {
	why  string
	in   *regexp.Regexp // of which recordings and commands; nil is all
	text *regexp.Regexp
	with string
}

// intendedDifferences are all that may differ. If they have become many, compare with a later commit.
var intendedDifferences []intended

// examples are the folders whose runs are recorded, with how they end.
var examples = map[string]int{
	"claims": 0, "code-review": 0, "coding-team": 0, "contract-review": 0, "customer-service": 0, "dev-team": 0, "failure": 1,
	"human-approval": 0, "incident-postmortem": 0, "meeting-summary": 0, "newsroom": 0, "process-agent": 0, "research": 0,
	"research-fanout": 0, "support-ticket": 0, "template": 0, "patterns/chain": 0, "patterns/debate": 0,
	"patterns/evaluator-optimizer": 0, "patterns/guard": 0, "patterns/judges": 0, "patterns/lead-scoring": 0,
	"patterns/map-reduce": 0, "patterns/orchestrator-workers": 0, "patterns/parallel-sections": 0,
	"patterns/plan-execute-replan": 0, "patterns/planned-handoffs": 0, "patterns/route": 0,
}

// The two commands, and the folder of the earlier commit.
type commands struct{ source, old, now string }

// errNoHistory reports a clone without the earlier commit, such as a shallow one.
var errNoHistory = errors.New("this clone does not have the commit")

var built = sync.OnceValues(func() (c commands, err error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return c, err
	}
	dir, err := os.MkdirTemp("", "same-")
	if err != nil {
		return c, err
	}
	c = commands{filepath.Join(dir, "source"), filepath.Join(dir, "old"), filepath.Join(dir, "now")}
	if err := os.Mkdir(c.source, 0o755); err != nil {
		return c, err
	}
	archive, err := exec.Command("git", "-C", root, "archive", before).Output()
	if err != nil {
		return c, fmt.Errorf("%w %s; get its whole history: %w", errNoHistory, before, err)
	}
	unpack := exec.Command("tar", "-x", "-C", c.source)
	unpack.Stdin = bytes.NewReader(archive)
	if out, err := unpack.CombinedOutput(); err != nil {
		return c, fmt.Errorf("%s: %w", out, err)
	}
	for source, program := range map[string]string{c.source: c.old, root: c.now} {
		build := exec.Command("go", "build", "-trimpath", "-o", program, "./cmd/runteam")
		build.Dir = source
		if out, err := build.CombinedOutput(); err != nil {
			return c, fmt.Errorf("%s: %w", out, err)
		}
	}
	return c, nil
})

// programs returns the two commands, which TestMain removes.
func programs(t *testing.T) commands {
	t.Helper()
	if !slowtest.Enabled() {
		t.Skip("it builds the command of an earlier commit: make same")
	}
	c, err := built()
	if errors.Is(err, errNoHistory) && os.Getenv("SAME") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	return c
}

func TestMain(m *testing.M) {
	status := m.Run()
	if slowtest.Enabled() {
		if c, _ := built(); c.source != "" {
			_ = os.RemoveAll(filepath.Dir(c.source))
		}
	}
	os.Exit(status)
}

// An output is what a command wrote, and its exit status.
type output struct {
	stdout, stderr string
	status         int
}

func run(t *testing.T, program, dir string, args ...string) output {
	t.Helper()
	c := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	c.Dir, c.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	var out, log bytes.Buffer
	c.Stdout, c.Stderr = &out, &log
	err := c.Run()
	if c.ProcessState == nil {
		require.NoError(t, err)
	}
	return output{out.String(), log.String(), c.ProcessState.ExitCode()}
}

var (
	ids    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32,}`)
	times  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z`)
	spans  = regexp.MustCompile(`"\w*(?:Ms|Duration|[sS]tart|[eE]nd|took)":\s?[\d.]+,?`)
	calls  = regexp.MustCompile(`chatcmpl-\d+|"bytesIfShared":\s?\d+`) // by the order of calls, which differs
	folder = regexp.MustCompile(`/[^"\s]*/same-[^"\s/]*|/tmp/[^"\s]*`)
)

// comparable leaves out of a text what differs between any two runs, and what is intended.
func comparable(text string, isOneRun bool, about string) string {
	if !isOneRun {
		text = calls.ReplaceAllString(ids.ReplaceAllString(text, "ID"), "")
		text = spans.ReplaceAllString(times.ReplaceAllString(text, "TIME"), "")
	}
	text = folder.ReplaceAllString(text, "FOLDER")
	for _, d := range intendedDifferences {
		if d.in == nil || d.in.MatchString(about) {
			text = d.text.ReplaceAllString(text, d.with)
		}
	}
	return text
}

// requireSame holds that both commands print the same.
func requireSame(t *testing.T, old, now output, isOneRun bool, about string) {
	t.Helper()
	where := t.Name() + " " + about
	require.Equal(t, comparable(old.stdout, isOneRun, where), comparable(now.stdout, isOneRun, where), about)
	require.Equal(t, old.status, now.status, "%s: %s", about, now.stderr)
}

// copied copies the folder of an example, and returns the folder that has it. The script is that of this commit, which
// both commands can read: a script in place of a model is no part of what is compared.
func (c commands) copied(t *testing.T, example string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "team"), os.DirFS(filepath.Join(c.source, "examples", example))))
	script := filepath.Join(dir, "team", "script.yaml")
	if os.Remove(script) == nil {
		copyFile(t, script, filepath.Join("../../examples", example, "script.yaml"))
	}
	return dir
}

// Plans, tables of who could see what, and prompts of all examples.
func TestPlansAndPrompts(t *testing.T) {
	t.Parallel()
	c := programs(t)
	for example := range examples {
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			dir := c.copied(t, example)
			requireSame(t, run(t, c.old, dir, "plan", "team", "-o", "json"), run(t, c.now, dir, "plan", "team", "-o", "json"), false, "plan")
			requireSame(t, run(t, c.old, dir, "check", "team"), run(t, c.now, dir, "check", "team"), false, "check")
			var prompts [2][]string
			var results [2]output
			for i, program := range []string{c.old, c.now} {
				name := fmt.Sprintf("%d.trace", i)
				results[i] = run(t, program, dir, "run", "team", "--offline", "--no-journal", "--trace", name, "-o", "json")
				prompts[i] = promptsOf(t, filepath.Join(dir, name))
			}
			requireSame(t, results[0], results[1], false, "run")
			require.NotEmpty(t, prompts[0])
			require.Equal(t, prompts[0], prompts[1])
		})
	}
}

// promptsOf returns the prompts in a trace with their receipts, sorted, since tasks run side by side.
func promptsOf(t *testing.T, trace string) (prompts []string) {
	t.Helper()
	text, err := os.ReadFile(trace)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, `{"prompt"`) {
			prompts = append(prompts, comparable(line, false, t.Name()))
		}
	}
	slices.Sort(prompts)
	return prompts
}

// A recording is a run in a journal, which the earlier command made.
type recording struct {
	dir     string
	batches []int64 // in their order
}

// journal is the name of its file in the folder of a recording.
const journal = "runs.db"

// The recordings that are more than one run of an example. The first word is the example.
const (
	threeTurns  = "chat of three turns"
	killed      = "newsroom killed and resumed"
	killedLater = "coding-team killed and resumed"
)

func (c commands) record(t *testing.T, name string) (r recording) {
	t.Helper()
	example, rest, _ := strings.Cut(name, " ")
	if rest == "killed and resumed" {
		first := c.record(t, example)
		r.dir = first.until(t, len(first.batches)/2)
		requireStatus(t, 0, run(t, c.old, r.dir, "resume", "--offline", "--journal", journal))
	} else {
		r.dir = c.copied(t, example)
		line := "run team --offline"
		if name == threeTurns {
			line = "chat team --offline --message Hello. --message When? --message Where?"
		}
		requireStatus(t, examples[example], run(t, c.old, r.dir, append(strings.Fields(line), "--journal", journal)...))
	}
	r.list(t)
	return r
}

func requireStatus(t *testing.T, status int, got output) {
	t.Helper()
	require.Equal(t, status, got.status, got.stderr)
}

// list finds the batches of the run.
func (r *recording) list(t *testing.T) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(r.dir, journal))
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.Query("select n from batches order by n")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var n int64
		require.NoError(t, rows.Scan(&n))
		r.batches = append(r.batches, n)
	}
	require.NoError(t, rows.Err())
	require.Greater(t, len(r.batches), 1)
}

// until copies the folder with the run as it was when its batch k was the last.
func (r recording) until(t *testing.T, k int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "team"), os.DirFS(filepath.Join(r.dir, "team"))))
	for _, name := range []string{journal, journal + ".key"} {
		copyFile(t, filepath.Join(dir, name), filepath.Join(r.dir, name))
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, journal))
	require.NoError(t, err)
	defer db.Close()
	last := r.batches[k]
	for _, statement := range []string{
		"delete from turns where ?1 < (select max(n) from batches) and (status <> '' or at > (select at from batches where n = ?1))",
		"delete from batches where n > ?1", "delete from answers where batch > ?1", "delete from leases where ?1 > 0",
	} {
		_, err := db.Exec(statement, last)
		require.NoError(t, err)
	}
	return dir
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	in, err := os.Open(from)
	require.NoError(t, err)
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = io.Copy(out, in)
	require.NoError(t, err)
	require.NoError(t, out.Close())
}

// Whatever a run has recorded when its process is killed, both commands show it alike, and resume it to the same result.
func TestBeginningsOfRuns(t *testing.T) {
	t.Parallel()
	c := programs(t)
	every := 80
	if os.Getenv("SAME") == "all" {
		every = 1
	}
	for _, name := range append(slices.Sorted(maps.Keys(examples)), threeTurns, killed, killedLater) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := c.record(t, name)
			for k := range r.batches {
				if k%every != every/2 && k != len(r.batches)-1 {
					continue
				}
				about := fmt.Sprintf("after %d of %d batches", k+1, len(r.batches))
				dir := r.until(t, k)
				for _, line := range []string{"show -o json", "runs -o json", "artifacts -o json"} {
					args := append(strings.Fields(line), "--journal", journal)
					requireSame(t, run(t, c.old, dir, args...), run(t, c.now, dir, args...), true, about+": "+line)
				}
				var results [2]output
				for i, program := range []string{c.old, c.now} {
					results[i] = run(t, program, r.until(t, k), "resume", "--offline", "--journal", journal, "-o", "json")
				}
				requireSame(t, outcome(t, results[0]), outcome(t, results[1]), false, about+": resume")
			}
			dir := r.until(t, len(r.batches)-1)
			requireSame(t, run(t, c.old, dir, "replay", "--journal", journal), run(t, c.now, dir, "replay", "--journal", journal), false, "replay")
		})
	}
}

// outcome returns what a resumed run ended with, without what it took.
func outcome(t *testing.T, p output) output {
	t.Helper()
	var result map[string]any
	if json.Unmarshal([]byte(p.stdout), &result) != nil {
		return p
	}
	text, err := json.MarshalIndent(withoutCosts(result), "", " ")
	require.NoError(t, err)
	return output{string(text), p.stderr, p.status}
}

func withoutCosts(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range []string{"usage", "totalUsage", "cost", "metrics", "duration", "totalTokenUsage", "tokenUsage"} {
			delete(value, name)
		}
		for name, v := range value {
			value[name] = withoutCosts(v)
		}
	case []any:
		for i, v := range value {
			value[i] = withoutCosts(v)
		}
	}
	return value
}
