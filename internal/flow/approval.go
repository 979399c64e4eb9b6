package flow

import (
	"strings"

	"github.com/runteam/runteam/internal/naming"
)

// approvalOf begins the titles of approvals.
const approvalOf = "approval of "

// PlanApprovalTitle is the title of the part of planning in which a person approves the plan.
const PlanApprovalTitle = approvalOf + "the plan"

// ApprovalTitle returns the title of the part of a task in which a person approves calls of a
// tool.
func ApprovalTitle(tool, task string) string {
	return approvalOf + naming.ToolPrefix + tool + " in " + task
}

// LoweringApprovalTitle returns the title of the part of a task in which a person approves what a
// declassifier delivers to it.
func LoweringApprovalTitle(entry, task string) string { return approvalOf + entry + " in " + task }

// IsApproval reports whether the title of a part of a task is that of an approval.
func IsApproval(title string) bool { return strings.HasPrefix(title, approvalOf) }
