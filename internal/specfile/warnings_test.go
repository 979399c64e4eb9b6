package specfile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/specfile"
)

// warningsOf loads a text and returns what is said of it, as the command prints it.
func warningsOf(t *testing.T, text string) []string {
	t.Helper()
	f, err := check(specfile.Options{Path: "-", Stdin: strings.NewReader(text)})
	require.NoError(t, err)
	all := []string{}
	for _, w := range f.Warnings {
		all = append(all, strings.TrimPrefix(w.At(), "-:")+": "+w.Message+"; "+w.Hint)
	}
	return all
}

func TestAttemptsAtAParameterAreAWarning(t *testing.T) {
	t.Parallel()
	const head = "params: {year: 1, plan: b}\nagents: [{name: a, systemPrompt: \"${params.plan}\"}]\ntasks: [{title: T, assignee: a, description: \"${params.year} "
	tests := []struct{ name, give, want string }{
		{"the name alone", "${year}", "write ${params.year}"},
		{"another case", "${YEAR}", "write ${params.year}"},
		{"blanks", "${ params.year }", "write ${params.year}"},
		{"a singular", "${param.year}", "write ${params.year}"},
		{"another group", "${inputs.year}", "write ${params.year}"},
		{"one that is not declared", "${param.month}", "write ${params.month}, and declare it under params"},
		{"the environment", "${env.HOME}", "the environment never enters a prompt; declare a parameter, and write ${params.NAME}"},
		{"a shell's variable", "${HOME}", ""},
		{"code", "`${a + b}` ${items.length} ${x", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := warningsOf(t, head+tt.give+"\"}]\n")
			if tt.want == "" {
				require.Empty(t, got)
				return
			}
			require.Equal(t, []string{`3:62: task "T": description: "` + tt.give + `" is plain text here; ` + tt.want}, got)
		})
	}
	require.Equal(t, []string{`2:35: agent "a": systemPrompt: "${year}" is plain text here; write ${params.year}`},
		warningsOf(t, "params: {year: 1}\nagents: [{name: a, systemPrompt: \"${year}\"}]\ntasks: [{title: T, assignee: a, description: x}]\n"), "no second one for a parameter that nothing uses")
}
