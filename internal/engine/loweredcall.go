package engine

import (
	"fmt"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
)

// refuseLowered says why a call is refused whose arguments only a declassifier can lower to
// what the tool accepts; empty if there is no reason. What the agent says has the label of
// said. The parameters of a tool are checked again, because those of a server that was not
// connected were unknown when the run was checked.
func refuseLowered(a *attempt, name string, said *envelope.Envelope) string {
	f := a.tool(name)
	if f == nil {
		return ""
	}
	reader := gate.ToolReader(f.Name)
	x := a.by.Terms(a.caps.Agent, reader).Admit(said.Classification(), f.Accepts, reader)
	if x.Lowers != nil && a.root != nil { // such calls are counted for a task and its assignee
		return fmt.Sprintf("Call refused: %s accepts at most %v, and only the arguments of the task's own agent are lowered.", f.Name, f.Accepts)
	}
	if x.Lowers == nil || x.Lowers.UnsafeText {
		return ""
	}
	for _, path := range x.Lowers.Paths {
		if err := a.run.team.Parameters[f.Name].Bounded(path); err != nil {
			return fmt.Sprintf("Call refused: the argument %v.", err)
		}
	}
	if a.lowered++; a.lowered > plan.MaxLoweredCalls {
		return fmt.Sprintf("Call refused: at most %d calls of a task may have arguments that a declassifier lowers.", plan.MaxLoweredCalls)
	}
	return ""
}
