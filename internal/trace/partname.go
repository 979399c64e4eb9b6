package trace

import (
	"fmt"
	"strings"

	"github.com/runteam/runteam/internal/record"
)

// PartName names a part of an attempt, such as "child call_1_1 turn 2" or "holder 2 turn 2": the agent of the task is
// the first holder of its conversation. The name is empty for the first prompt.
func PartName(part string) string {
	name, end, holders := "", 0, 1
	for strings.HasPrefix(part[end:], record.ChildPrefix) {
		id, _, _ := strings.Cut(part[end+len(record.ChildPrefix):], "/")
		end += len(record.ChildPrefix) + len(id)
		if record.ChildPrefix+id == record.HolderPart {
			holders++
			name = fmt.Sprintf("holder %d", holders)
		} else {
			name += " child " + id
		}
	}
	return strings.TrimSpace(name + " " + strings.ReplaceAll(strings.Trim(part[end:], "/"), "/", " "))
}
