package cli

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/pgtest"
)

// everyRun returns what commands say of each run of a journal, by their arguments, and the runs.
func everyRun(t *testing.T, dir, journal string, env map[string]string) (said map[string]outcome, runs []struct{ RunID, Status string }) {
	t.Helper()
	env = maps.Clone(env)
	env[journals.EnvJournal] = journal
	said = map[string]outcome{}
	run := func(args ...string) outcome {
		got := call{bare: true, dir: dir, env: env, args: args}.run(t)
		said[strings.Join(args, " ")] = got
		return got
	}
	require.NoError(t, json.Unmarshal([]byte(run("runs", "-o", "json").stdout), &runs))
	for _, r := range runs {
		for _, verb := range []string{"show", "explain", "audit verify"} {
			run(append(append(strings.Fields(verb), r.RunID), "-o", "json")...)
		}
		run("replay", r.RunID) // whose JSON has the times of the replay
	}
	run("questions", "-o", "json")
	return said, runs
}

// A copy of a journal is shown, explained, verified, replayed and resumed as the original: of any version, in a file and in
// a database.
func TestJournalCopy(t *testing.T) {
	t.Parallel()
	pgtest.Shared(t)
	key := map[string]string{journals.EnvJournalKey: journalTestKey}
	for _, from := range []string{"earlier", "version3", "version8", "version9", "now"} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			env, dir := maps.Clone(key), ""
			switch from {
			case "now":
				dir = harvestFolder(t)
				require.NoError(t, os.Mkdir(filepath.Join(dir, journals.FolderName), 0o700))
				for _, args := range []string{"run --offline", "run --offline --max-token-budget 10", "run --offline --reuse", "replay --without Read.the.yield", "chat team.yaml --offline --agent writer"} {
					words := strings.Fields(args)
					for i := range words {
						words[i] = strings.ReplaceAll(words[i], "Read.the.yield", "Read the yield")
					}
					got := call{bare: true, dir: dir, env: env, args: words, stdin: "Go on.\n"}.run(t)
					require.NotEqual(t, exit.StatusUsage, got.status, "%s: %+v", args, got)
				}
			case "version3":
				files := map[string]string{}
				for _, suffix := range []string{"", ".key"} {
					files[".runteam/runs.db"+suffix] = clitest.Contents(t, "../journal/testdata/version3.db"+suffix)
				}
				dir = clitest.Folder(t, files)
			default:
				files := earlierFiles(t, "../journal/testdata/"+from)
				dir = clitest.Folder(t, files)
				if from == "earlier" {
					env[journals.EnvJournalKey], env[journals.EnvAuditKey] = strings.TrimSpace(files["journal.key"]), strings.TrimSuffix(files["audit.key"], "\n")
				}
			}
			require.NoError(t, os.Chmod(filepath.Join(dir, journals.FolderName), 0o700))
			file, database, back := filepath.Join(journals.FolderName, journals.FileName), pgtest.Address(t), "back.db"
			want, runs := everyRun(t, dir, file, env)
			require.NotEmpty(t, runs)
			copies := [][2]string{{file, database}, {database, back}}
			if from == "now" {
				copies = append(copies, [2]string{database, pgtest.Address(t)}, [2]string{file, "file.db"})
			}
			for _, copied := range copies {
				got := call{bare: true, dir: dir, env: env, args: []string{"journal", "copy", copied[0], copied[1]}}.run(t)
				require.Equal(t, exit.StatusOK, got.status, "%+v", got)
				require.Contains(t, got.stdout, " in ")
				said, _ := everyRun(t, dir, copied[1], env)
				require.Len(t, said, len(want))
				for args, is := range want {
					require.Equal(t, is, said[args], "%s of %q", args, copied)
				}
				again := call{bare: true, dir: dir, env: env, args: []string{"journal", "copy", copied[0], copied[1]}}.run(t)
				require.Equal(t, exit.StatusNoRun, again.status)
				require.Contains(t, again.stderr, "there is a journal already, and the digests of two journals do not mix")
			}
			if from != "now" {
				return
			}
			missing := call{bare: true, dir: dir, env: env, args: []string{"journal", "copy", "nothing.db", "new.db"}}.run(t)
			require.Equal(t, "runteam: FROM nothing.db: there is no such file\n", missing.stderr)
			require.NoFileExists(t, filepath.Join(dir, "new.db"))
			for _, at := range []string{database, back} {
				env[journals.EnvJournal] = at
				for _, r := range runs {
					if r.Status == "budget_exhausted" {
						got := call{bare: true, dir: dir, env: env, args: []string{"resume", r.RunID, "--max-token-budget", "100000"}}.run(t)
						require.Equal(t, exit.StatusOK, got.status, "%+v", got)
						require.Contains(t, got.stdout, "Dear owner")
					}
				}
				require.Equal(t, exit.StatusOK, call{bare: true, dir: dir, env: env, args: []string{"run", "--offline"}}.run(t).status, "the numbers go on")
			}
		})
	}
}
