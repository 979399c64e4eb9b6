package cli

import (
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/stretchr/testify/require"
)

// A database that has the journal is a reader in the plan, without its user and password. A file is none.
func TestPlanHasTheDatabaseOfTheJournal(t *testing.T) {
	t.Parallel()
	const address = "postgres://canary:canary@db.example:6432/runs?password=canary"
	dir := copyOf(t, "../../examples/support-ticket")
	for name, tt := range map[string]struct {
		args []string
		env  map[string]string
		want string // empty if there is no such reader
	}{
		"no database": {nil, map[string]string{"RUNTEAM_JOURNAL": "runs.db"}, ""},
		"flag":        {[]string{"--journal", address}, nil, "confidential, encrypted from secret"},
		"variable":    {nil, map[string]string{"RUNTEAM_JOURNAL": address, "RUNTEAM_ENCRYPT_FROM": "internal"}, "public, encrypted from internal"},
		"both limits": {[]string{"--journal", address, "--encrypt-from", "confidential"}, map[string]string{"RUNTEAM_ENCRYPT_FROM": "public"}, "internal, encrypted from confidential"},
		"all":         {[]string{"--journal", address, "--encrypt-from", "public"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, form := range []string{"text", "json", "dot"} {
				got := call{dir: dir, env: tt.env, args: append([]string{"plan", "-o", form}, tt.args...)}.run(t)
				require.Equal(t, exit.StatusOK, got.status, "%+v", got)
				require.NotContains(t, got.stdout+got.stderr, "canary")
				switch reader := "journal postgres at db.example:6432 (database runs)"; form {
				case "text":
					require.Equal(t, tt.want != "", strings.Contains(got.stdout, reader+", "+tt.want))
				case "json":
					require.Equal(t, tt.want != "", strings.Contains(got.stdout, reader))
				}
			}
		})
	}
}

// textsOf returns the texts of a stored run that the key of its journal shows, by their labels.
func textsOf(t *testing.T, j *journal.Journal, run string) map[label.Classification][]string {
	all := map[label.Classification][]string{}
	add := func(level label.Classification, texts ...string) { all[level] = append(all[level], texts...) }
	payload := func(r *envelope.Record) {
		if r != nil {
			add(r.Classification, r.Text, string(r.JSON))
		}
	}
	stored, err := j.Load(t.Context(), run)
	require.NoError(t, err)
	for _, f := range stored.Info.Files {
		require.Empty(t, f.Missing)
		add(f.Label, f.Text)
	}
	for _, e := range stored.History.Log {
		for _, x := range []*record.AgentCall{e.Exchange, e.Rejected, e.Turn, e.ToolResult, e.Files} {
			if x != nil {
				payload(x.Result)
			}
		}
		if e.Sent != nil {
			payload(e.Sent.Message)
		}
		if e.Answer != nil {
			add(e.Answer.Label, e.Answer.Text, e.Answer.Reason)
		}
	}
	tr, err := j.Trace(t.Context(), run)
	require.NoError(t, err)
	for i := range tr.Prompts {
		p := &tr.Prompts[i]
		for _, at := range append(p.System, p.Text...) {
			if at.Source >= 0 {
				add(p.Receipt.Sources[at.Source].Classification, at.Words)
			}
		}
	}
	return all
}

// longText is what is long enough to stand for itself: a line, or the value of a member.
var longText = regexp.MustCompile(`[^\n"\\]{30,}`)

// messageID is the ID of a handoff, which prompts have beside its sender.
var messageID = regexp.MustCompile(`^[0-9a-f-]{36}$`)

// Whatever is in a run, its values from the limit on are in the lines of the journal only where the key shows them.
//
// Requirement: G42.
func TestEncryptFromHidesTheTextsOfARun(t *testing.T) {
	t.Parallel()
	key, err := hex.DecodeString(journalTestKey)
	require.NoError(t, err)
	for _, example := range []string{"claims", "contract-review", "research", "newsroom", "research-fanout", "dev-team", "customer-service", "code-review", "failure", "patterns/lead-scoring", "patterns/judges", "patterns/orchestrator-workers", "human-approval"} {
		for _, from := range []label.Classification{label.Public, label.Internal, label.Confidential} {
			t.Run(example+"/"+from.String(), func(t *testing.T) {
				t.Parallel()
				dir := copyOf(t, "../../examples/"+example)
				got := offlineRun(t, call{dir: dir, env: map[string]string{"RUNTEAM_JOURNAL_KEY": journalTestKey}}, "--no-input", "--encrypt-from", from.String())
				require.NotEqual(t, exit.StatusUsage, got.status, "%+v", got)
				j, err := journal.Open(filepath.Join(dir, ".runteam", "runs.db"), journal.Options{Key: key, ReadOnly: true})
				require.NoError(t, err)
				defer j.Close() //nolint:errcheck // nothing was written
				list, err := j.Newest(t.Context(), "", 1)
				require.NoError(t, err)
				raw, err := journaltest.Text(j.Lines(t.Context(), list[0].Run))
				require.NoError(t, err)
				all := textsOf(t, j, list[0].Run)
				var low strings.Builder
				low.WriteString("[withheld: failed; status failed]") // in place of a result that there is not
				for level, texts := range all {
					if level < from {
						low.WriteString(strings.Join(texts, "\n"))
					}
				}
				hidden, clear := 0, 0
				for level, texts := range all {
					for _, text := range texts {
						for _, words := range longText.FindAllString(text, -1) {
							if level >= from && (strings.Contains(low.String(), words) || messageID.MatchString(words)) {
								continue
							}
							form, err := json.Marshal(words)
							require.NoError(t, err)
							switch found := strings.Contains(raw, strings.Trim(string(form), `"`)); {
							case level >= from && found:
								t.Errorf("%v text in the clear: %s", level, words)
							case level >= from:
								hidden++
							case found:
								clear++
							}
						}
					}
				}
				require.True(t, from == label.Confidential || hidden > 0)
				require.Equal(t, from == label.Confidential, clear > 0)
			})
		}
	}
}
