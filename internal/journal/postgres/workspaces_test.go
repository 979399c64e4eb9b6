package postgres_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/pgtest"
)

// The workspaces of a journal are in the same folders by whatever address it is opened, and those of a copy are not.
func TestWorkspacesByOtherAddresses(t *testing.T) {
	t.Parallel()
	direct := pgtest.Address(t)
	_, other := newProxy(t, direct)
	o := journal.Options{Workspaces: t.TempDir()}
	of := func(address string) []string { return open(t, address, o).Private() }
	folders := of(direct)
	require.Len(t, folders, 2)
	require.Equal(t, folders, of(other))

	u, err := url.Parse(pgtest.Address(t))
	require.NoError(t, err)
	from, err := url.Parse(direct)
	require.NoError(t, err)
	pgtest.Exec(t, u.String(), "create table journal as table "+from.Query().Get("search_path")+".journal") // as a dump that is restored
	for _, folder := range of(u.String()) {
		require.NotContains(t, folders, folder)
	}
}
