package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// layered is a spec of n tasks in JSON, ten a layer, each of which depends on
// three of the layer before, for so many agents.
func layered(n, agents int) string {
	var b strings.Builder
	b.WriteString(`{"name": "layered", "model": "m", "inputs": {"brief": {"text": "Go."}}, "agents": [`)
	for i := range agents {
		fmt.Fprintf(&b, `%s{"name": "agent %d"}`, strings.Repeat(",", min(i, 1)), i)
	}
	b.WriteString(`], "tasks": [`)
	for i := range n {
		reads := `"uses": ["brief"]`
		if above := (i/10 - 1) * 10; above >= 0 {
			reads = fmt.Sprintf(`"dependsOn": ["Task %d", "Task %d", "Task %d"]`, above+i%10, above+(i+1)%10, above+(i+2)%10)
		}
		fmt.Fprintf(&b, `%s{"title": "Task %d", "assignee": "agent %d", "description": "Do it.", %s}`, strings.Repeat(",", min(i, 1)), i, i*7%agents, reads)
	}
	b.WriteString("]}")
	return b.String()
}

// BenchmarkPlan runs the whole command, from the bytes of the spec to the last byte of
// its output.
func BenchmarkPlan(b *testing.B) {
	text := layered(10_000, 50)
	for _, args := range []string{"", "-o json", "-o dot", "-o mermaid", "--from brief", "--to user"} {
		b.Run(args, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				con, _, stderr := clitest.Console(b, append([]string{"plan", "-"}, strings.Fields(args)...)...)
				con.Stdin = strings.NewReader(text)
				require.Equal(b, exit.StatusOK, runCommandLine(con), stderr)
			}
		})
	}
}
