package flow

import "github.com/runteam/runteam/internal/naming"

// ApprovalTitle returns the title of the part of a task in which a person approves calls of a
// tool.
func ApprovalTitle(tool, task string) string {
	return "approval of " + naming.ToolPrefix + tool + " in " + task
}

// PlanApprovalTitle is the title of the part of planning in which a person approves the plan.
const PlanApprovalTitle = "approval of the plan"

// LoweringApprovalTitle returns the title of the part of a task in which a person approves what a
// declassifier delivers to it.
func LoweringApprovalTitle(entry, task string) string { return "approval of " + entry + " in " + task }
