package postgres_test

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journal/postgres"
	"github.com/runteam/runteam/internal/pgtest"
)

// A server that refuses what is written ends the run. Once it does not, the run is resumed with all that was stored.
func TestRefusedRunIsResumed(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t)
	s := pgtest.Start(t)
	for name, of := range map[string]struct {
		parameters    url.Values
		before        []string
		refuse, allow func(t *testing.T)
		is            error
		says          string
	}{
		"the disk of the server is full": {
			parameters: url.Values{"search_path": {"disk"}, "default_tablespace": {"small"}},
			before:     []string{"create schema disk", "create tablespace small location '" + disk + "/space'"},
			refuse: func(t *testing.T) {
				_ = exec.Command("dd", "if=/dev/zero", "of="+filepath.Join(disk, "filler"), "bs=8k").Run() // until it is full
			},
			allow: func(t *testing.T) { require.NoError(t, os.Remove(filepath.Join(disk, "filler"))) },
			is:    journal.ErrFull,
			says:  "No space left on device",
		},
		"the user has no rights any more": {
			parameters: url.Values{"search_path": {"rights"}, "user": {"weak"}, "password": {"weak"}},
			before:     []string{"create role weak login password 'weak'", "create schema rights authorization weak"},
			refuse:     func(t *testing.T) { s.Exec(t, "revoke insert on rights.batches from weak") },
			allow:      func(t *testing.T) { s.Exec(t, "grant insert on rights.batches to weak") },
			says:       "the user may not do that in the database: grant",
		},
		"the server becomes a standby": {
			parameters: url.Values{"search_path": {"standby"}},
			before:     []string{"create schema standby"},
			refuse: func(t *testing.T) {
				s.Exec(t, "alter role postgres set default_transaction_read_only = on")
				s.Exec(t, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'runteam' and usename = 'postgres'")
			},
			allow: func(t *testing.T) {
				s.Exec(t, "begin read write; alter role postgres reset default_transaction_read_only; commit")
				s.Exec(t, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'runteam' and usename = 'postgres'")
			},
			says: "the server is a read-only standby",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if disk == "" && of.is != nil {
				t.Skip("only root can mount a small disk")
			}
			s.Exec(t, of.before...)
			address := s.Address(of.parameters)
			dead := journal.ThisHolder()
			dead.Started += "0"
			j, err := postgres.Open(t.Context(), address, journal.Options{Key: key, Holder: &dead})
			require.NoError(t, err)
			r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
			require.NoError(t, err)
			require.NoError(t, add(r, ready("t0")))
			of.refuse(t)
			stored := []string{"t0"}
			for err == nil {
				of := ready(fmt.Sprint("t", len(stored)))
				of.Event.Title = rand.Text() + strings.Repeat(rand.Text(), 1000)
				if err = add(r, of); err == nil {
					stored = append(stored, string(of.Event.Task))
				}
			}
			if of.is != nil {
				require.ErrorIs(t, err, of.is)
			}
			require.ErrorContains(t, err, of.says)
			_, err = r.End(t.Context())
			require.ErrorContains(t, err, of.says)
			of.allow(t)
			_ = j.Close()
			j = open(t, address, journal.Options{})
			r, _, err = j.Resume(t.Context(), "r1")
			require.NoError(t, err)
			require.NoError(t, add(r, ready("last")))
			requireStored(t, j, "r1", append(stored, "last")...)
		})
	}
}

// smallDisk mounts a file system of 8 MB for the server; empty if that is not allowed.
func smallDisk(t *testing.T) string {
	t.Helper()
	at, err := os.MkdirTemp("", "disk") // the server may enter it
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(at)) })
	if exec.Command("mount", "-t", "tmpfs", "-o", "size=8m,mode=777", "none", at).Run() != nil {
		return ""
	}
	t.Cleanup(func() { require.NoError(t, exec.Command("umount", at).Run()) })
	require.NoError(t, exec.Command("install", "-d", "-o", "postgres", filepath.Join(at, "space")).Run())
	return at
}
