package journal_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/synth"
	"github.com/runteam/runteam/task"
)

var canaries = regexp.MustCompile(`canary-[a-z]+`)

func allText(t *testing.T, path string) string {
	var b strings.Builder
	for _, text := range files(t, filepath.Dir(path)) {
		b.WriteString(text)
	}
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.Query("select kept, rest from batches order by n")
	require.NoError(t, err)
	for rows.Next() {
		var blobs [2][]byte
		require.NoError(t, rows.Scan(&blobs[0], &blobs[1]))
		for _, blob := range blobs {
			text, err := journal.Decompress(blob)
			require.NoError(t, err)
			b.Write(text)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func requireNoCanaries(t *testing.T, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		for _, m := range canaries.FindAllStringIndex(line, -1) {
			t.Errorf("%s in …%.200s… of %.40s", line[m[0]:m[1]], line[max(0, m[0]-120):min(len(line), m[1]+40)], line)
		}
	}
}

// eachLimit calls a function for each limit of what a journal stores in the clear, and for canaries of each level. hidden
// says that readers of the file must not find these.
func eachLimit(t *testing.T, test func(t *testing.T, o journal.Options, level label.Classification, hidden bool)) {
	limits := map[string]journal.Options{"without a key": {}, "with a key": {Key: oneKey}}
	for from := label.Public; from <= label.Secret; from++ {
		limits["from "+from.String()] = journal.Options{Key: oneKey, EncryptFrom: new(from)}
	}
	for name, o := range limits {
		from := label.Secret
		if o.EncryptFrom != nil {
			from = *o.EncryptFrom
		}
		for level := label.Public; level <= label.Secret; level++ {
			t.Run(name+"/"+level.String(), func(t *testing.T) {
				t.Parallel()
				test(t, o, level, level >= from)
			})
		}
	}
}

// requireCanaries fails if a text has canaries, or unless they are hidden, if it lacks one of these.
func requireCanaries(t *testing.T, text string, hidden bool, names ...string) {
	if hidden {
		requireNoCanaries(t, text)
		return
	}
	for _, name := range names {
		require.True(t, strings.Contains(text, name), "%s is in the clear", name)
	}
}

type ver struct{ engine.AgentFunc }

func (ver) Version() string { return "1" }

func bare(from, to string) handoff.PairRule {
	c := label.Secret
	return handoff.PairRule{From: from, To: to, Ceiling: &c}
}

func exact(from, to string) handoff.PairRule {
	return handoff.PairRule{From: from, To: to, Mode: handoff.Full}
}

// Requirement: G42.
func TestJournalHasNoSecretOfARun(t *testing.T) {
	t.Parallel()
	eachLimit(t, func(t *testing.T, o journal.Options, level label.Classification, hidden bool) {
		path := filepath.Join(t.TempDir(), "runs.db")
		j, err := journal.Open(path, o)
		require.NoError(t, err)
		r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
		require.NoError(t, err)
		worker := ver{func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			title, _, _ := strings.Cut(strings.TrimPrefix(p.Text(), "# Task: "), "\n")
			switch {
			case strings.Contains(title, "fail"):
				return agent.Reply{}, &llm.Error{Kind: "canary-kind", Message: "canary-said"}
			case strings.Contains(title, "panic"):
				panic("canary-panic")
			case strings.Contains(title, "schema"):
				return agent.Reply{Text: `{"canary-member": "canary-value"}`}, nil
			}
			return agent.Reply{Text: "canary-result", Tags: nil}, nil
		}}
		sec := label.Secret
		m := func(n string) engine.Member {
			return engine.Member{Name: n, Agent: worker, Accepts: label.Secret, SystemPrompt: "You."}
		}
		tm, err := engine.New(engine.Config{Agents: []engine.Member{m("one"), m("two"), m("three")}, Policy: &handoff.Policy{Rules: []handoff.PairRule{
			exact("user", "one"), exact("user", "two"), exact("one", "two"), exact("one", "user"), exact("two", "user"), exact("three", "user"), {From: "one", To: "three", Mode: handoff.Full, Translate: &handoff.Translation{MaxTokens: 50, ByModel: true}},
			exact("two", "three"), exact("user", "three"),
		}}})
		require.NoError(t, err)
		uses := []task.Use{{Name: "facts"}}
		specs := []task.Spec{
			{Title: "a", Description: "A.", Classification: level, Assignee: "one", Uses: uses},
			{Title: "b", Description: "canary-description", Classification: level, Assignee: "one", Metadata: map[string]any{"canary-meta": "canary-metavalue"}},
			{Title: "c", Description: "C", Classification: level, Assignee: "two", DependsOn: task.On("a", "b")},
			{Title: "fail1", Description: "C", Classification: level, Assignee: "two", DependsOn: task.On("a")},
			{Title: "fail2", Description: "canary-desc", Classification: level, Assignee: "one"},
			{Title: "panic1", Description: "C", Classification: level, Assignee: "one", Uses: uses},
			{Title: "schema1", Description: "C", Classification: level, Assignee: "one", Uses: uses, OutputSchema: []byte(`{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}`)},
			{Title: "retold", Description: "C", Classification: level, Assignee: "three", DependsOn: task.On("a")},
			{Title: "after", Description: "C", Classification: level, Assignee: "three", DependsOn: task.On("fail1")},
			{Title: "afterall", Description: "C", Classification: level, Assignee: "three", MemoryScope: task.ScopeAll, DependsOn: []task.Ref{{Task: "fail1", Optional: true}, {Task: "schema1", Optional: true}, {Task: "panic1", Optional: true}}},
		}
		res, err := tm.RunTasks(t.Context(), specs, &engine.RunOptions{RunID: "r1", Journal: journaltest.Opened(r), UserAccepts: &sec, Reveal: true, Inputs: []engine.Input{{Name: "facts", Text: "canary-input", Classification: level}},
			Messages: []engine.Message{{From: "user", To: "one", Text: "canary-message", Classification: level}, {From: "user", To: "three", Text: "canary-message", Classification: level}}})
		require.NoError(t, err)
		text := allText(t, path)
		requireCanaries(t, text, hidden, "canary-input", "canary-result", "canary-description", "canary-message", "canary-said", "canary-panic")
		require.NoError(t, res.JournalErr)
		for _, s := range []string{"canary-input", "canary-result", "canary-description"} {
			d := sha256.Sum256([]byte(s))
			if strings.Contains(text, hex.EncodeToString(d[:])) {
				t.Errorf("plain digest of %s", s)
			}
		}
		for _, tk := range res.Tasks {
			if tk.Envelope != nil {
				d := tk.Envelope.Digest()
				if strings.Contains(text, d) {
					t.Errorf("plain digest of the envelope of %s", tk.Title)
				}
			}
		}
		if o.Key != nil {
			stored, err := j.Load(t.Context(), "r1")
			require.NoError(t, err)
			read := 0
			for _, e := range stored.History.Log {
				if e.Exchange != nil && e.Exchange.Result != nil && e.Exchange.Result.Text == "canary-result" {
					read++
				}
			}
			require.Positive(t, read)
			tr, err := j.Trace(t.Context(), "r1")
			require.NoError(t, err)
			require.Equal(t, level < label.Secret, len(tr.Contains("canary-result").Occurrences) > 0, "no caller sees the prompt of a secret task")
		}
		require.NoError(t, j.Close())
		requireCanaries(t, allText(t, path), hidden)
	})
}

// Requirement: G42.
func TestJournalHasNoSecretOfAGoal(t *testing.T) {
	t.Parallel()
	eachLimit(t, func(t *testing.T, o journal.Options, level label.Classification, hidden bool) {
		path := filepath.Join(t.TempDir(), "runs.db")
		j, err := journal.Open(path, o)
		require.NoError(t, err)
		r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
		require.NoError(t, err)
		lead := ver{func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			if strings.Contains(p.Text(), "\n## Goal\n") && !strings.Contains(p.Text(), "Task Results") {
				return agent.Reply{Text: `[{"title":"title","description":"planned","assignee":"one","uses":["facts"]},{"title":"fine","description":"x","assignee":"one","dependsOn":["title"]}]`}, nil
			}
			return agent.Reply{Text: "canary-answer"}, nil
		}}
		worker := ver{func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			if strings.Contains(p.Text(), "fine") {
				return agent.Reply{}, errors.New("canary-broken")
			}
			return agent.Reply{Text: "canary-work"}, nil
		}}
		sec := label.Secret
		tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "one", Agent: worker, Accepts: label.Secret}}, Coordinator: &engine.Coordinator{Agent: lead, Backend: plan.Backend{Version: "1"}, MayGrant: synth.Grants{Inputs: true}}, Policy: &handoff.Policy{Rules: []handoff.PairRule{
			exact("user", "one"), bare("coordinator", "one"), exact("one", "one"), exact("one", "coordinator"), bare("coordinator", "user"), exact("one", "user"), bare("coordinator", "coordinator"),
		}}})
		require.NoError(t, err)
		goal := engine.Goal{Text: "canary-goal", Classification: level}
		if level == label.Secret { // no rule can give a coordinator a secret goal
			goal = engine.Goal{Text: "goal"}
		}
		res, err := tm.RunTeam(t.Context(), goal, &engine.RunOptions{RunID: "r1", Journal: journaltest.Opened(r), UserAccepts: &sec, Reveal: true, Inputs: []engine.Input{{Name: "facts", Text: "canary-input", Classification: level}}})
		require.NoError(t, err)
		require.Equal(t, "canary-answer", res.Output)
		requireCanaries(t, allText(t, path), hidden, "canary-goal", "canary-input")
		require.NoError(t, j.Close())
	})
}
