package cli

import (
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journal/postgres"
	"github.com/runteam/runteam/internal/pgtest"
)

// harvestFolder returns a new folder with a team that has a script.
func harvestFolder(t *testing.T) string {
	return clitest.Folder(t, map[string]string{
		"team.yaml": clitest.Contents(t, "testdata/team.yaml"), "script.yaml": clitest.Contents(t, "testdata/script.yaml"),
		"journal-key": journalTestKey, "wrong-key": strings.Repeat("5a", journal.KeyBytes),
	})
}

// pageOfServe are requests whose answers have all that the page shows of a run.
func pageOfServe(run string) []string {
	return []string{"/runs", "/runs/" + run, "/runs/" + run + "/graph", "/runs/" + run + "/events", "/runs/" + run + "/export", "/questions", "/info"}
}

// A password in the address of a database is in nothing that commands print, store or serve.
func TestPasswordOfJournalIsShownNowhere(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	const canary = "fjord4711" // percent-encoding leaves it as it is
	const password = canary + "/@ ?#&=" + canary
	inQuery := func(u url.URL) string {
		u.User = url.User(u.User.Username())
		u.RawQuery += "&sslpassword=" + canary + "&password=" + strings.ReplaceAll(url.QueryEscape(password), "+", "%20")
		return u.String()
	}
	for _, tt := range []struct {
		name    string
		byFlag  bool
		address func(u url.URL) string
	}{
		{"flag", true, func(u url.URL) string { return u.String() }},
		{"flag, in a setting", true, inQuery},
		{"variable", false, func(u url.URL) string { return u.String() }},
		{"variable, in a setting", false, inQuery},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := *server.UserAddress(t, password)
			u.RawQuery += "&application_name=x"
			address, dir := tt.address(u), harvestFolder(t)
			run := func(address string, status int, args ...string) outcome {
				t.Helper()
				c := call{bare: true, dir: dir, args: args, env: map[string]string{journals.EnvJournalKey: journalTestKey}}
				if tt.byFlag {
					c.args = append(c.args, "--journal", address)
				} else {
					c.env[journals.EnvJournal] = address
				}
				got := c.run(t)
				require.NotContains(t, got.stdout+got.stderr, canary, "%q", args)
				require.Equal(t, status, got.status, "%q: %+v", args, got)
				return got
			}
			u.User = url.User(u.User.Username())
			hint := "runteam explain \"Write the letter\""
			if got := run(address, exit.StatusOK, "run", "--offline"); tt.byFlag {
				require.Regexp(t, hint+` --journal '`+strings.NewReplacer("?", `\?`).Replace(u.String())+"'", got.stderr)
			} else {
				require.Contains(t, got.stderr, hint)
				require.NotContains(t, got.stderr, "--journal")
			}
			for _, args := range []string{
				"run --offline -o json", "run --offline --max-token-budget 10", "runs -o json", "runs", "show", "show -o json", "show --usage", "explain", "explain -o json",
				"replay", "questions", "audit verify", "gc --older-than 30d", "export --html page.html", "artifacts", "plan team.yaml", "check team.yaml",
			} {
				words := strings.Fields(args)
				status := exit.StatusOK
				if strings.Contains(args, "budget") {
					status = exit.StatusFailed
				} else if words[0] == "plan" || words[0] == "check" {
					if tt.byFlag {
						continue // they have no such flag
					}
				}
				run(address, status, words...)
			}
			run(address, exit.StatusOK, "resume", "--max-token-budget", "100000")

			key, err := journal.ParseKey([]byte(journalTestKey))
			require.NoError(t, err)
			j, err := postgres.Open(t.Context(), address, journal.Options{Key: key, ReadOnly: true})
			require.NoError(t, err)
			list, err := j.Runs(t.Context())
			require.NoError(t, err)
			require.Len(t, list, 3)
			for _, s := range list {
				for line, err := range j.Lines(t.Context(), s.Run) {
					require.NoError(t, err)
					require.NotContains(t, string(line), canary)
				}
			}
			require.NoError(t, j.Close())

			env := map[string]string{journals.EnvJournalKey: journalTestKey}
			served := call{dir: dir, env: env, args: []string{"team.yaml", "--offline"}}
			if tt.byFlag {
				served.args = append(served.args, "--journal", address)
			} else {
				env[journals.EnvJournal] = address
			}
			s := serveHere(t, served)
			for _, path := range pageOfServe(list[0].Run) {
				_, body := s.do("GET", path, "")
				require.NotContains(t, body, canary, path)
			}
			got := s.stop()
			require.NotContains(t, got.stdout+got.stderr, canary)
			require.Contains(t, got.stderr, "serving postgres://user_of_")

			copied := call{bare: true, dir: dir, env: env, args: []string{"journal", "copy", address, "copy.db"}}.run(t)
			require.Equal(t, exit.StatusOK, copied.status)
			require.NotContains(t, copied.stdout+copied.stderr, canary)
			for _, bad := range []func(string) string{
				func(a string) string { return strings.Replace(a, "127.0.0.1:", "127.0.0.1:1", 1) },
				func(a string) string { return strings.Replace(a, "/postgres?", "/nothing?", 1) },
				func(a string) string { return strings.Replace(a, "postgres://user", "postgres://nobody", 1) },
				func(a string) string { return strings.ReplaceAll(a, canary, canary+"x") },
				func(a string) string { return strings.Replace(a, "127.0.0.1:", "127.0.0.1:x", 1) },
				func(a string) string { return strings.Replace(a, "postgres://", "postgre://", 1) },
				func(a string) string { return strings.Replace(a, "postgres://", "postgres:/", 1) },
				func(a string) string { return strings.Replace(a, "postgres://", "postgres:", 1) },
				func(a string) string { return a + "&a=%zz&sslmode=nonsense" },
				func(a string) string { return "postgres://ann:12/34" + canary + "@127.0.0.1/runs" },
				func(a string) string { return "postgres://ann:12#34" + canary + "@127.0.0.1/runs" },
				func(a string) string { return "postgres://ann:12?34" + canary + "@127.0.0.1/runs" },
				func(a string) string { return "postgres://ann:a@b" + canary + "@127.0.0.1/runs" },
				func(a string) string { return "host=127.0.0.1 password=" + canary },
			} {
				copied := call{bare: true, dir: dir, env: env, args: []string{"journal", "copy", "team.yaml", bad(address)}}.run(t)
				require.NotContains(t, copied.stdout+copied.stderr, canary)
				for _, args := range [][]string{{"run", "--offline"}, {"show"}, {"serve"}, {"__complete", "show"}, {"runs"}} {
					c := call{bare: true, dir: dir, args: args, env: maps.Clone(env)}
					if c.env[journals.EnvJournal] = bad(address); tt.byFlag {
						c.args = append(c.args, "--journal", bad(address))
					}
					if args[0] == "__complete" {
						c.args = append(c.args, "")
					}
					got := c.run(t)
					require.NotContains(t, got.stdout+got.stderr, canary, "%q", c.args)
					if args[0] != "__complete" {
						require.NotEqual(t, exit.StatusOK, got.status)
					}
				}
			}
			for _, args := range [][]string{{"runs", address}, {address}, {"runs", "--limit", address}, {"runs", "--limit=" + address}, {"runs", "-o", "json", address}, {"replay", "a", address}} {
				got := (call{bare: true, dir: dir, args: args}).run(t)
				require.NotContains(t, got.stdout+got.stderr, canary, "%q", args)
				require.NotEqual(t, exit.StatusOK, got.status)
			}
			written, err := os.ReadDir(filepath.Join(dir, journals.FolderName))
			require.ErrorIs(t, err, os.ErrNotExist, "%v", written)
		})
	}
}

// An error about a database says what to write.
func TestErrorsOfDatabases(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	with := func(address string, change func(u *url.URL, settings url.Values)) string {
		u, err := url.Parse(address)
		require.NoError(t, err)
		settings := u.Query()
		change(u, settings)
		u.RawQuery = settings.Encode()
		return u.String()
	}
	settings := func(address string, pairs ...string) string {
		return with(address, func(_ *url.URL, s url.Values) {
			for i := 0; i < len(pairs); i += 2 {
				s.Set(pairs[i], pairs[i+1])
			}
		})
	}
	dir := harvestFolder(t)
	run := func(address string, args ...string) outcome {
		return call{bare: true, dir: dir, env: map[string]string{journals.EnvJournal: address}, args: args}.run(t)
	}
	filled := func(statements ...string) string {
		address := server.Schema(t)
		require.Equal(t, exit.StatusOK, run(address, "run", "--offline", "--journal-key", "journal-key").status)
		pgtest.Exec(t, address, statements...)
		return address
	}
	stranger := server.UserAddress(t, "x")
	server.Exec(t, "create table "+stranger.Query().Get("search_path")+".secrets ()", "revoke create on schema "+stranger.Query().Get("search_path")+" from "+stranger.User.Username())
	readable := filled()
	for _, tt := range []struct {
		name, address, args, want string
		status                    int
	}{
		{"no server", with(readable, func(u *url.URL, _ url.Values) { u.Host = "127.0.0.1:1" }), "run", "the server of the database cannot be reached: see that it runs, and that this host may connect to it", 3},
		{"no such host", with(readable, func(u *url.URL, s url.Values) { u.Host = "db.invalid"; s.Set("sslmode", "verify-full") }), "show", "the server of the database cannot be reached: see that it runs, and that this host may connect to it; what was written before is safe (lookup db.invalid", 3},
		{"no key", readable, "show --journal-key", "requires a journal key: give it with --journal-key FILE or RUNTEAM_JOURNAL_KEY; `(umask 077; openssl rand -hex 32 > FILE)` makes one", 2},
		{"wrong key", readable, "show --journal-key wrong-key", "the key of the digests is encrypted under the key", 3},
		{"wrong password", with(stranger.String(), func(u *url.URL, _ url.Values) { u.User = url.UserPassword(u.User.Username(), "y") }), "show", "the server does not accept the user or the password", 3},
		{"no such user", with(readable, func(u *url.URL, _ url.Values) { u.User = url.User("nobody") }), "run", "the server does not accept the user or the password", 3},
		{"no such database", with(readable, func(u *url.URL, _ url.Values) { u.Path = "/nothing" }), "run", "there is no such database: create it with `createdb`, or give another one", 3},
		{"no such schema", settings(readable, "search_path", "nothing"), "run", "the schema in search_path does not exist: create it, or give another one", 3},
		{"may not create", stranger.String(), "run", "grant usage and create on the schema to the user", 3},
		{"no journal", server.Schema(t), "show", "there is no journal in the database yet; a run makes one", 3},
		{"standby without a journal", settings(server.Schema(t), "default_transaction_read_only", "on"), "run", "give the address of the primary", 3},
		{"standby", settings(readable, "default_transaction_read_only", "on"), "run", "give the address of the primary", 3},
		{"other tables", filled("drop table journal"), "run", "the database has tables of these names that are no journal of runteam", 3},
		{"another table journal", filled("drop table journal", "create table journal (entry text)"), "run", "the database has tables of these names that are no journal of runteam", 3},
		{"newer", filled("update journal set form = 99"), "show", "it was written by a newer runteam, in version 99 of its form", 3},
		{"earlier", filled("update journal set form = 10", "alter table journal drop column tag"), "run", "it was written by an earlier runteam, in version 10 of its form, and this one needs version", 3},
		{"not verified", "postgres://ann@db.example/runs?sslmode=require", "show", "write sslmode=verify-full in the address", 3},
		{"no address", "mysql://ann@db.example/runs", "show", "RUNTEAM_JOURNAL: the address cannot be read: write postgres://USER@HOST:PORT/DATABASE", 2},
		{"nonsense", settings(readable, "sslmode", "nonsense"), "show", "open the journal in PostgreSQL: the address cannot be read", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			words := strings.Fields(tt.args)
			switch {
			case words[len(words)-1] == "--journal-key":
				words = words[:len(words)-1]
			case len(words) == 1:
				words = append(words, "--journal-key", "journal-key")
			}
			if words[0] == "run" {
				words = append(words, "--offline")
			}
			began := time.Now()
			got := run(tt.address, words...)
			require.Less(t, time.Since(began), 10*time.Second)
			require.Contains(t, got.stderr, tt.want)
			require.Equal(t, tt.status, got.status)
			require.Equal(t, 1, strings.Count(got.stderr, "\n"), "%s", got.stderr)
		})
	}
}
