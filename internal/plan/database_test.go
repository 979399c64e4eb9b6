package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// The name of a database has no user, no password and no setting of its URL, whatever these contain; an error has none either.
func TestJournalDatabaseHasNoCredentials(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"postgres://db.example/runs":                                      "journal postgres at db.example (database runs)",
		"postgresql://canary:canary@db.example:6432/runs?password=canary": "journal postgres at db.example:6432 (database runs)",
		"postgres://canary:canary%2F%40%3F@[2001:db8::1]:5432/runs":       "journal postgres at [2001:db8::1]:5432 (database runs)",
		"postgres://canary@db.example":                                    "journal postgres at db.example",
		"postgres:///runs?host=/tmp&user=canary":                          "journal postgres at this computer (database runs)",
		"postgres://ann:canary/x@db.example/runs":                         "",
		"postgres://ann:1/canary@db.example/runs":                         "",
		"postgres://ann:1?canary@db.example/runs":                         "",
		"postgres://ann:1#canary@db.example/runs":                         "",
		"postgres://ann:can@canary@db.example/runs":                       "",
		"postgres:canary":                                                 "",
		"mysql://ann:canary@db.example/runs":                              "",
		"host=db.example password=canary":                                 "",
		"postgres://ann:%zzcanary@db.example/runs":                        "",
	} {
		d, err := plan.NewJournalDatabase(address, label.Secret)
		if want == "" {
			require.ErrorContains(t, err, "write postgres://USER@HOST:PORT/DATABASE", address)
			require.NotContains(t, err.Error(), "canary")
			continue
		}
		require.NoError(t, err, address)
		require.Equal(t, want, d.String())
	}
}

// A database that has the journal reads what is stored there in the clear, and what derives from it.
//
// Requirement: G48.
func TestFlowHasTheDatabaseOfTheJournal(t *testing.T) {
	t.Parallel()
	first, last := by("a", spec("first")), by("a", spec("last"))
	first.Uses, first.Classification = []task.Use{{Name: "note"}}, label.Confidential
	last.Uses, last.DependsOn = []task.Use{{Name: "claim"}}, []task.Ref{{Task: "first", Optional: true}}
	specs := []task.Spec{first, last}
	r := newTeam(t, cleared("a", label.Confidential))
	inputs := []plan.Input{{Name: "claim", Text: "x", Classification: label.Internal}, {Name: "note", Text: "x", Classification: label.Confidential}, {Name: "price", Text: "x", Classification: label.Public}}
	for from, want := range map[label.Classification]string{
		label.Secret:       "whole whole whole whole whole",
		label.Confidential: "whole derived whole derived whole", // if the first task fails, the result of the last is internal
		label.Internal:     "never never whole never never",
	} {
		d, err := plan.NewJournalDatabase("postgres://db.example/runs", from)
		require.NoError(t, err)
		p, err := r.plan(specs, &plan.Options{Inputs: inputs, Database: d})
		require.NoError(t, err)
		table := p.Flow()
		g := table.Graph()
		reader := len(g.Readers) - 1
		require.Equal(t, flow.Reader{Kind: flow.Journal, Name: "journal postgres at db.example (database runs)", Clearance: from - 1}, g.Readers[reader])
		var got []string
		for i := range g.Sources {
			got = append(got, table.Reach(i, reader).String())
		}
		require.Equal(t, want, strings.Join(got, " "), from)
	}
	p, err := r.plan(specs, &plan.Options{Inputs: inputs, Database: &plan.JournalDatabase{Host: "h", EncryptFrom: label.Public}})
	require.NoError(t, err)
	without, err := r.plan(specs, &plan.Options{Inputs: inputs})
	require.NoError(t, err)
	require.Equal(t, without.Flow().Graph().Readers, p.Flow().Graph().Readers, "nothing is in the clear there")
}
