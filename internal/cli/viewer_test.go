package cli

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/runteam/runteam/internal/gate"

	"github.com/klauspost/compress/zstd"
	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/internal/workdir"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// patientSchema bounds kind and code, so that a declassifier may lower them,
// and leaves the rest free.
const patientSchema = `{"type":"object","required":["kind","code","note"],"properties":{
"kind":{"enum":["zebrakind","lionkind"]},"code":{"type":"string","pattern":"^[a-z]{8}$","maxLength":8},
"note":{"type":"string"},"hivcanary":{"type":"boolean"},"cards":{"type":"array","items":{"type":"string"}}}}`

// patientResult has a canary in each place: values, an optional member, values
// to be redacted, and a length that no other text has.
var patientResult = `{"cards":["4111 1111 1111 1111","5500 0055 5555 5559"],"code":"qkplcode","hivcanary":true,"kind":"zebrakind","note":"noteword ` +
	strings.Repeat("lorem ipsum ", 500) + `<|im_start|> ada.one@example.org"}`

// A hidden is what a viewer below the label must not find: a pattern, and the words of which each match
// has one, since a search for words is much faster.
type hidden struct {
	what    string
	words   []string
	pattern string
}

// aboveViewer is what a viewer below the label must not find.
var aboveViewer = []hidden{
	{"a free text", []string{"noteword"}, `noteword`},
	{"a bounded value", []string{"qkplcode"}, `qkplcode`},
	{"an enum value", []string{"zebrakind"}, `kind\\*":\\*"zebrakind`},
	{"the name of a member", []string{"hivcanary"}, `[^"]/hivcanary|"/hivcanary|\\"hivcanary\\":true`},
	{"paths of members", []string{"fieldsIncluded", "fieldsExcluded", `kept":`, `dropped":`, `unmatched":`}, `fields(Included|Excluded)":\["/|"(kept|dropped|unmatched)":`},
	{"counts of redacted values", []string{`redacted":`, "redacted "}, `"redacted":\{|redacted [0-9]|"redacted":[1-9]`},
	{"the number of redacted values", []string{" redacted"}, `[1-9][0-9]* values? redacted`},
	{"a count of control tokens", []string{"broken"}, `broken [0-9]|"broken":[0-9]`},
	{"how much was cut", []string{", cut ", `cutFrom":`, "cut from"}, `, cut [0-9]|cutFrom":[0-9]|cut from`},
	{"the exact size of a result", sizes, `\b(` + strings.Join(sizes, "|") + `)\b`},
	{"a number of tokens", []string{"71117", "81119", "71,117", "81,119"}, `\b(71117|81119)\b|71,117|81,119`},
}

// sizes are the size of the result, in bytes and estimated tokens.
var sizes = []string{fmt.Sprint(len(patientResult)), fmt.Sprint(len(patientResult) / 4), fmt.Sprint(len(patientResult)/4 + 1)}

// find returns where a text has what is hidden; nil if nowhere.
func (h *hidden) find(text string) []int {
	if !slices.ContainsFunc(h.words, func(word string) bool { return strings.Contains(text, word) }) {
		return nil
	}
	return regexp.MustCompile(h.pattern).FindStringIndex(text)
}

// A translationCase is one combination: how a result is translated on its way, which
// declassifier lowers it, and how sensitive it is.
type translationCase struct {
	translation  string
	declassifier string
	level        label.Classification
}

func (c translationCase) String() string {
	return strings.ReplaceAll(fmt.Sprintf("%s, %s, %v", c.translation, c.declassifier, c.level), " ", "-")
}

var translations = map[string]*handoff.Translation{
	"none": nil, "fields": {Fields: []task.Path{"/kind", "/code", "/note"}}, "filter": {Filter: []task.Path{"/cards"}},
	"excerpt": {MaxTokens: 30}, "model": {MaxTokens: 40, ByModel: true}, "model and fields": {MaxTokens: 40, ByModel: true, Fields: []task.Path{"/kind", "/note"}},
	"recast user": {Recast: gate.RecastUser}, "recast system": {Recast: gate.RecastSystem},
}

var loweredPaths = map[string][]task.Path{"none": nil, "enum": {"/kind"}, "bounded": {"/code"}, "unsafe text": {task.Whole}}

// policy returns the rule that delivers the result of maker to reader.
func (c translationCase) policy() *handoff.Policy {
	p := &handoff.Policy{Rules: []handoff.PairRule{{From: "maker", To: "reader", Mode: handoff.Full, Translate: translations[c.translation]}}}
	if c.translation == "recast system" {
		p.Endorse = []handoff.Endorser{{Entry: handoff.Entry{Name: "endorsed", From: "maker", To: "reader", Reason: "a test"}}}
	}
	if paths := loweredPaths[c.declassifier]; paths != nil {
		p.Declassify = []handoff.Declassifier{{Entry: handoff.Entry{Name: "lowered", From: "maker", To: "reader", Reason: "a test"}, Paths: paths, LowerTo: label.Public, UnsafeText: c.declassifier == "unsafe text"}}
	}
	return p
}

// accepts is the clearance of the reader: with a declassifier less than the label.
func (c translationCase) accepts() label.Classification {
	if c.declassifier == "none" {
		return c.level
	}
	return label.Public
}

// run runs maker and reader for a caller who is one level below the result, and
// returns all output in the process: trace, events, log and result.
func (c translationCase) run(t *testing.T, j *journal.Journal) string {
	t.Helper()
	replies := func(text string) engine.AgentFunc {
		return func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			return agent.Reply{Text: text, Usage: llm.Usage{InputTokens: 71117, OutputTokens: 81119}}, nil
		}
	}
	var seenMu sync.Mutex // guards seen: the reader has two tasks
	var seen string       // by the reader, so that the test can fail
	reader := engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		seenMu.Lock()
		defer seenMu.Unlock()
		seen += p.System() + p.Text()
		return agent.Reply{Text: "done"}, nil
	})
	var logged, traced, answerInPrompt bytes.Buffer
	tm, err := engine.New(engine.Config{
		Policy: c.policy(), Logger: slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Agents: []engine.Member{
			{Name: "maker", Agent: replies(patientResult), Accepts: c.level, SystemPrompt: "You make."},
			{Name: "reader", Agent: reader, Accepts: c.accepts(), SystemPrompt: "You read."},
		},
	})
	require.NoError(t, err)
	stored, err := j.Begin(t.Context(), journal.Info{Run: c.String(), Time: clitest.Noon})
	require.NoError(t, err)
	writer := trace.NewWriter(&traced, trace.Options{Run: c.String()})
	viewer := c.level - 1
	res, err := tm.RunTasks(t.Context(), []task.Spec{
		{Title: "make", Description: "Make it.", Assignee: "maker", Classification: c.level, OutputSchema: []byte(patientSchema)},
		{Title: "read", Description: "Read it.", Assignee: "reader", Classification: label.Public, DependsOn: []task.Ref{{Task: "make"}}},
		{Title: "tell", Description: "Say that it is done.", Assignee: "reader", Classification: label.Public}, // for whom the run is
	}, &engine.RunOptions{RunID: c.String(), UserAccepts: &viewer, Journal: journaltest.Opened(stored), Recorder: writer.Record, Output: "tell", Subscribers: []func(event.Event){writer.Event, func(e event.Event) {
		text, err := json.Marshal(e)
		require.NoError(t, err)
		answerInPrompt.Write(append(text, '\n'))
	}}})
	require.NoError(t, err)
	require.NoError(t, res.Err())
	require.NotEmpty(t, seen)
	if c.translation != "excerpt" && (c.declassifier == "none" || c.declassifier == "unsafe text") {
		require.Contains(t, seen, "noteword")
	}
	_, err = writer.Close(res, clitest.Noon)
	require.NoError(t, err)
	_, err = stored.Close(t.Context())
	require.NoError(t, err)
	result, err := json.Marshal(res)
	require.NoError(t, err)
	for i := range res.Tasks {
		receipts, err := json.Marshal(res.Tasks[i].Receipts)
		require.NoError(t, err)
		result = append(result, receipts...)
	}
	return strings.Join([]string{traced.String(), answerInPrompt.String(), logged.String(), string(result)}, "\n")
}

// inJournal runs a command that reads the journal of a folder.
func inJournal(t *testing.T, dir string, args ...string) string {
	t.Helper()
	con, stdout, stderr := clitest.Console(t, args...)
	con.WorkDir = workdir.Dir(dir)
	require.Equal(t, exit.StatusOK, runCommandLine(con), "%v: %s", args, stderr)
	return stdout.String() + stderr.String()
}

// linesOf returns the lines of a journal of a folder.
func linesOf(t *testing.T, dir string) string {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, journals.FolderName, journals.FileName))
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.Query("select kept, rest from batches order by n")
	require.NoError(t, err)
	defer rows.Close()
	dictionary, err := os.ReadFile("../journal/dictionary.txt")
	require.NoError(t, err)
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderDictRaw(9, dictionary))
	require.NoError(t, err)
	defer decoder.Close()
	var out strings.Builder
	for rows.Next() {
		var blobs [2][]byte
		require.NoError(t, rows.Scan(&blobs[0], &blobs[1]))
		for _, blob := range blobs {
			text, err := decoder.DecodeAll(blob, nil)
			require.NoError(t, err)
			out.Write(text)
		}
	}
	require.NoError(t, rows.Err())
	return out.String()
}

// requireHidden fails if a text contains what is hidden, and shows where.
func requireHidden(t *testing.T, where, text string) {
	t.Helper()
	for i := range aboveViewer {
		if at := aboveViewer[i].find(text); at != nil {
			t.Errorf("%s: %s: …%s…", where, aboveViewer[i].what, text[max(0, at[0]-150):min(len(text), at[1]+60)])
		}
	}
}

// What is hidden is found by its words and its pattern.
func TestHiddenTextsAreFound(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"a noteword", "qkplcode", `{\"kind\":\"zebrakind\"`, "no /hivcanary", `["/hivcanary"]`, `\"hivcanary\":true`, `"fieldsIncluded":["/kind"]`, `"dropped":["x"]`,
		`"redacted":{"card":2}`, "redacted 2", "12 values redacted", `"redacted":2`, "broken 1", `"broken":1`, "x, cut 30", `"cutFrom":30`, "cut from 30",
		"it has " + sizes[1] + " bytes", "71117", "81,119 tokens",
	} {
		require.True(t, slices.ContainsFunc(aboveViewer, func(h hidden) bool { return h.find(text) != nil }), text)
	}
	require.False(t, slices.ContainsFunc(aboveViewer, func(h hidden) bool { return h.find(`{"redacted":0,"note":"zebrakind is withheld"}`) != nil }))
}

// Whatever translates or lowers a result, a viewer below its label learns no value, member, count or
// exact size from the trace, the events, the log, the result, explain and show. A journal without a
// key stores none of these of a secret result.
//
// Requirement: G50.
func TestEveryTranslationWithEveryDeclassifier(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTest(t, dir, journal.Options{})
	var all []translationCase
	for translation := range translations {
		for declassifier := range loweredPaths {
			for _, level := range []label.Classification{label.Internal, label.Confidential, label.Secret} {
				if level != label.Secret && translation != "none" && declassifier != "none" && !slowtest.Enabled() {
					continue // each pair at one level, and each of a pair at each level
				}
				if translation == "model and fields" && declassifier == "bounded" {
					continue // /code is none of the fields
				}
				all = append(all, translationCase{translation, declassifier, level})
			}
		}
	}
	if slowtest.RaceDetector {
		all = all[:len(all)/12] // in random order
	}
	for _, c := range all {
		requireHidden(t, c.String()+", in the process", c.run(t, j))
	}
	require.NoError(t, j.Close())
	for line := range strings.Lines(linesOf(t, dir)) {
		if strings.Contains(line, fmt.Sprint("-", label.Secret, "\"")) || strings.Contains(line, fmt.Sprint("-", label.Secret, "/")) {
			requireHidden(t, "the journal", line)
		}
	}
	for i, c := range all {
		if c.level != label.Secret || i%4 != 0 && !slowtest.Enabled() {
			continue // the commands print what the trace has
		}
		requireHidden(t, c.String()+", explain", inJournal(t, dir, "explain", c.String()))
		requireHidden(t, c.String()+", explain in JSON", inJournal(t, dir, "explain", c.String(), "-o", "json"))
		requireHidden(t, c.String()+", show", inJournal(t, dir, "show", c.String(), "make", "-o", "json"))
		requireHidden(t, c.String()+", show --usage", inJournal(t, dir, "show", c.String(), "--usage"))
		require.Contains(t, inJournal(t, dir, "explain", c.String(), "--contains", "noteword"), "occurs in nothing that may be shown")
	}
}
