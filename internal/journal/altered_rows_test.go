package journal_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// rewrite changes the kept lines of a run.
func rewrite(t *testing.T, path string, change func(string) string) {
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.Query("select n, kept from batches order by n")
	require.NoError(t, err)
	type row struct {
		n    int64
		text string
	}
	var list []row
	for rows.Next() {
		var r row
		var blob []byte
		require.NoError(t, rows.Scan(&r.n, &blob))
		text, err := journal.Decompress(blob)
		require.NoError(t, err)
		r.text = string(text)
		list = append(list, r)
	}
	for _, r := range list {
		if changed := change(r.text); changed != r.text {
			_, err = db.Exec("update batches set kept = ? where n = ?", journal.Compress([]byte(changed)), r.n)
			require.NoError(t, err)
		}
	}
}

var keyOf = regexp.MustCompile(`"key":"([0-9a-f]+)","core":"([0-9a-f]+)"`)

func dbTeam(t *testing.T, calls map[string]int) *engine.Team {
	w := func(name string) engine.Member {
		return engine.Member{Name: name, Backend: plan.Backend{Version: "1"}, Accepts: label.Confidential, Agent: engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			calls[name]++
			return agent.Reply{Text: "to " + p.Text()[len("# Task: "):len("# Task: ")+1]}, nil
		})}
	}
	tm, err := engine.New(engine.Config{Agents: []engine.Member{w("one"), w("two")}})
	require.NoError(t, err)
	return tm
}

// Requirement: G19.
func TestAnswerUnderAnotherPromptsKeyIsNotTaken(t *testing.T) {
	for _, mode := range []string{"reuse", "resume"} {
		t.Run(mode, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "runs.db")
			specs := []task.Spec{{Title: "a", Description: "A.", Assignee: "one"}, {Title: "c", Description: "C.", Assignee: "one", DependsOn: task.On("a")}}
			j, err := journal.Open(path, journal.Options{Key: oneKey})
			require.NoError(t, err)
			r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
			require.NoError(t, err)
			_, err = dbTeam(t, map[string]int{}).RunTasks(t.Context(), specs, &engine.RunOptions{RunID: "r1", Journal: journaltest.Opened(r), MaxConcurrency: 1})
			require.NoError(t, err)
			_, err = r.Close(t.Context())
			require.NoError(t, err)
			require.NoError(t, j.Close())

			var keys [][]string
			rewrite(t, path, func(s string) string {
				for _, m := range keyOf.FindAllStringSubmatch(s, -1) {
					keys = append(keys, m)
				}
				return s
			})
			require.Len(t, keys, 2, fmt.Sprint(keys))
			rewrite(t, path, func(s string) string {
				s = strings.ReplaceAll(s, keys[0][1], "X")
				s = strings.ReplaceAll(s, keys[1][1], keys[0][1])
				return strings.ReplaceAll(s, "X", keys[1][1])
			})
			db, err := sql.Open("sqlite", path)
			require.NoError(t, err)
			_, err = db.Exec("update answers set batch = (select sum(batch) from (select distinct batch from answers)) - batch")
			require.NoError(t, err)
			db.Close()
			j, err = journal.Open(path, journal.Options{Key: oneKey})
			require.NoError(t, err)
			defer j.Close()
			calls := map[string]int{}
			o := &engine.RunOptions{Tasks: specs, Journal: j}
			var res *engine.Result
			if mode == "reuse" {
				o.RunID, o.Reuse = "r2", true
				res, err = dbTeam(t, calls).RunTasks(t.Context(), specs, o)
			} else {
				res, err = dbTeam(t, calls).Resume(t.Context(), "r1", o)
			}
			require.NoError(t, err)
			require.Equal(t, "to a", res.Tasks[0].Result)
			require.Equal(t, "to c", res.Tasks[1].Result)
			require.Equal(t, map[string]int{"one": 2}, calls)
		})
	}
}

// A run is not resumed with a copy of a spec that was altered in the file.
//
// Requirement: G19.
func TestCopyOfAFileThatWasAlteredIsMissing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	j, err := journal.Open(path, journal.Options{Key: oneKey})
	require.NoError(t, err)
	_, err = j.Begin(t.Context(), journal.Info{Run: "r1", Files: []journal.File{{Path: "team.yaml", Text: "policy: strict", Label: label.Internal}, {Path: "x", Text: "y", Label: label.Secret}}})
	require.NoError(t, err)
	require.NoError(t, j.Close())
	rewrite(t, path, func(s string) string { return strings.Replace(s, "policy: strict", "policy: none", 1) })
	j, err = journal.Open(path, journal.Options{Key: oneKey, ReadOnly: true})
	require.NoError(t, err)
	defer j.Close()
	s, err := j.Load(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, journal.ErrAltered.Error(), s.Info.Files[0].Missing, "it is not encrypted")
	require.False(t, journal.Locked(s.Info.Files[0].Missing))
	require.Empty(t, s.Info.Files[0].Text)
	require.Equal(t, "y", s.Info.Files[1].Text)
}

// An answer of a person that was altered in the record is reported when the run is resumed, too.
func TestAlteredAnswerOfARecordIsReported(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
	require.NoError(t, err)
	require.NoError(t, appendEntries(r,
		record.Entry{Question: &record.Question{Session: "r1/t/1", Task: "t", Title: "T", Agent: "editor", Time: noon, Key: record.Key{1}}},
		record.Entry{Answer: &record.Answer{Session: "r1/t/1", Task: "t", Title: "T", Agent: "editor", By: "ann", Time: noon, Key: record.Key{1}, Text: "send"}}))
	_, err = r.End(t.Context())
	require.NoError(t, err)
	require.NoError(t, j.Close())
	for _, altered := range []bool{false, true} {
		if altered {
			rewrite(t, path, func(s string) string { return strings.Replace(s, `"text":"send"`, `"text":"stop"`, 1) })
		}
		var log bytes.Buffer
		j, err = journal.Open(path, journal.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		r, _, err = j.Resume(t.Context(), "r1")
		require.NoError(t, err)
		require.Equal(t, altered, strings.Contains(log.String(), "was not written by runteam; it is not used"), log.String())
		_, err = r.Close(t.Context())
		require.NoError(t, err)
		require.NoError(t, j.Close())
	}
	require.Equal(t, audit.Broken, verified(t, path, "r1", audit.VerifyOptions{}).Status)
}

// A command to a run that another program wrote into the journal, or altered there, is reported, and not carried out.
//
// Requirement: G56.
func TestForgedCommandsAreReported(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(line string) string{
		"as it was": func(line string) string { return line },
		"altered":   func(line string) string { return strings.Replace(line, `"ann"`, `"bob"`, 1) },
		"a policy":  func(line string) string { return strings.TrimSuffix(line, "}") + `,"policy":{}}` },
		"none":      func(string) string { return "yes" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "runs.db")
			var log bytes.Buffer
			j, err := journal.Open(path, journal.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			require.NoError(t, err)
			defer j.Close() //nolint:errcheck // of a test
			r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
			require.NoError(t, err)
			sent := make(chan error, 1)
			go func() { sent <- j.Steer(t.Context(), "r1", steer.Command{Kind: steer.Pause, By: "ann"}) }()
			db, err := sql.Open("sqlite", path)
			require.NoError(t, err)
			defer db.Close()
			var line []byte
			require.Eventually(t, func() bool {
				return db.QueryRowContext(t.Context(), "select line from commands").Scan(&line) == nil
			}, 10*time.Second, 10*time.Millisecond)
			forged := forge(string(line))
			require.Equal(t, name == "as it was", forged == string(line))
			_, err = db.ExecContext(t.Context(), "update commands set line = ?", []byte(forged))
			require.NoError(t, err)
			report := verified(t, path, "r1", audit.VerifyOptions{})
			list, err := r.Commands(t.Context())
			require.NoError(t, err)
			if forged == string(line) {
				require.NotEqual(t, audit.Broken, report.Status)
				require.Len(t, list, 1)
				require.NoError(t, r.Refuse(t.Context(), list[0].Number, "not now"))
				require.ErrorContains(t, <-sent, "not now")
				return
			}
			require.Equal(t, audit.Broken, report.Status)
			require.Contains(t, report.Why, "a command waits beside the record that was altered, or was not written by runteam")
			require.Empty(t, list)
			require.ErrorIs(t, <-sent, steer.ErrRefused)
			require.Contains(t, log.String(), "a command in the journal was altered, or was not written by runteam; it is not used")
			require.NotEqual(t, audit.Broken, verified(t, path, "r1", audit.VerifyOptions{}).Status)
		})
	}
}
