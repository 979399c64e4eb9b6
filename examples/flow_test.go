package examples_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/flowtest"
)

// TestCanariesStayOnTheirPaths plants in every input and every result of every
// example, with agents that repeat everything that they read, and looks for each
// canary wherever anything is written.
func TestCanariesStayOnTheirPaths(t *testing.T) {
	t.Parallel()
	specs, err := filepath.Glob("*/team.yaml")
	require.NoError(t, err)
	patterns, err := filepath.Glob("patterns/*/team.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, patterns)
	specs = append(specs, patterns...)
	for _, spec := range specs {
		for _, careless := range []bool{false, true} {
			name := filepath.Dir(spec)
			if name == "chat" { // its tasks are what a person types
				continue
			}
			if careless {
				name += ", careless"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := flowtest.Load(t, spec)
				if careless {
					f.Careless()
				}
				f.PlantEverywhere()
				f.Run(t)
			})
		}
	}
}

// TestExamplesKeepToTheirReaders checks who reads what in each example.
func TestExamplesKeepToTheirReaders(t *testing.T) {
	t.Parallel()
	tests := []struct {
		example string
		assert  func(f *flowtest.Flow)
	}{
		{"claims", func(f *flowtest.Flow) {
			claim := f.PlantInput("claim")
			f.Never(claim, "policy-desk", "service-desk", "statistics")
			f.Reaches(claim, "intake", "estimates")
			holder := f.PlantResult("Extract the facts", "/holder/name")
			f.Never(holder, "fraud", "coverage", "statistics", "service-desk")
			f.Reaches(holder, "letters")
			notes := f.PlantResult("Decide the claim", "/internal_notes/0")
			f.Never(notes, "letters", "statistics")
			f.Reaches(notes, "handler") // who writes the note for the file
		}},
		{"newsroom", func(f *flowtest.Flow) {
			claim := f.PlantHandoff("Report the coast")
			f.Reaches(claim, "checker")
			f.Never(claim, "harbor-reporter")
			f.Reaches(f.PlantHandoff("Check the claims"), "editor")
		}},
		{"customer-service", func(f *flowtest.Flow) {
			margin := f.PlantInput("orders", "/item")
			f.Reaches(margin, "triage", "billing", "supervisor")
			said := f.PlantResult("Help the customer", "")
			f.Reaches(said, "billing", "archive")
		}},
		{"support-ticket", func(f *flowtest.Flow) {
			name := f.PlantInput("ticket", "/customer/name")
			f.Never(name, "triage", "reply")
			f.Reaches(name, "refunds", "http://localhost:11434/v1")
			notes := f.PlantInput("ticket", "/internal_notes/1")
			f.Never(notes, "refunds", "reply")
			f.Reaches(notes, "triage")
			summary := f.PlantResult("Sort the ticket", "/summary")
			f.Never(summary, "refunds", "reply")
			f.Reaches(summary, "user")
		}},
		{"research", func(f *flowtest.Flow) {
			minutes := f.PlantInput("minutes")
			f.Never(minutes, "botanist", "accountant")
			f.Reaches(minutes, "jurist", "coordinator", "user") // the coordinator reads what the jurist wrote
			trees := f.PlantResult("Judge the trees", "")
			f.Never(trees, "jurist")
			f.Reaches(trees, "accountant", "coordinator")
		}},
		{"incident-postmortem", func(f *flowtest.Flow) {
			chat := f.PlantInput("chat")
			f.Never(chat, "operator", "analyst")
			f.Reaches(chat, "lead", "writer")
			f.Reaches(f.PlantResult("Order the events", ""), "writer") // by the shared memory
		}},
		{"patterns/evaluator-optimizer", func(f *flowtest.Flow) {
			feedback := f.PlantResult("Check", "/feedback")
			f.Reaches(feedback, "writer", "publisher") // in the notice that follows it
			f.Reaches(f.PlantResult("Write", ""), "editor", "publisher")
		}},
		{"patterns/lead-scoring", func(f *flowtest.Flow) {
			f.Never(f.PlantInput("leads", "/1/message"), "writer", "owner")
			f.Reaches(f.PlantResult("Score", "/why"), "writer", "owner")
		}},
		{"patterns/map-reduce", func(f *flowtest.Flow) {
			query := f.PlantResult("Plan", "/searches/1/query")
			f.Reaches(query, "searcher", "writer")
			f.Never(f.PlantResult("Plan", "/reason"), "searcher", "writer")
			archive := f.PlantInput("archive", "/old-mill.md")
			f.Reaches(archive, "searcher")
			f.Never(archive, "planner")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.example, func(t *testing.T) {
			t.Parallel()
			f := flowtest.Load(t, tt.example)
			tt.assert(f)
			f.Run(t)
		})
	}
}
