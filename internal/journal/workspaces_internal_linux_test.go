package journal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFolderOfWorkspaces(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/home/ann/.cache")
	t.Setenv("HOME", "/home/ann")
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	for _, tt := range []struct{ folder, identity, want string }{
		{"", "/p/.runteam/runs.db", "/p/.runteam/runs.db.workspaces"},
		{"", "/p/runs.db", "/p/.runteam-runs.db.workspaces"},
		{"/share", "/p/.runteam/runs.db", "/share/.runteam-digest"},
		{"/share", "postgres://db/runs", "/share/.runteam-digest"},
		{"", "postgres://db/runs", filepath.Join(cache, "runteam", "workspaces", ".runteam-digest")},
	} {
		require.Equal(t, tt.want, workspaceDir(tt.folder, fileOf(tt.identity), "digest"))
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	require.Equal(t, filepath.Join(os.TempDir(), ".runteam-digest"), workspaceDir("", "", "digest"), "of a user without a home")
}
