package record

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/task"
)

// TurnPrefix begins the Part of a turn of a conversation with tools; its number follows.
const TurnPrefix = "/turn/"

// ChildPrefix begins the Part of a child of an attempt; the ID of the call that spawned it follows. The
// turns of the child, and its own children, have Parts that begin with that of the child.
const ChildPrefix = "/child/"

// HolderPart is the Part of the agent to which an attempt transferred its conversation, behind that of the attempt. It
// does not say in which turn, which depends on what only the earlier agent may have read.
const HolderPart = ChildPrefix + "holder"

// CallPrefix begins the ID of a call of a tool, which is in the Part of what it reads.
const CallPrefix = "call_"

// IsInner reports whether a session, or a Part, is of a later turn, a call of a tool or a child of an attempt. Its
// number depends on what the agent reads.
func IsInner(session string) bool {
	return strings.Contains(session, TurnPrefix) || strings.Contains(session, ChildPrefix) || strings.Contains(session, "/"+CallPrefix)
}

// AttemptOf returns the number of the attempt that a session of a prompt belongs to; zero for another session.
func AttemptOf(session string) int {
	_, rest, _ := strings.Cut(session, "/"+string(TaskOf(session))+"/")
	number, _, _ := strings.Cut(rest, "/")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return n
}

// TurnOf returns the turn in which a call of a tool was made, from 1; zero for another session.
func TurnOf(call string) (turn int) {
	_, _ = fmt.Sscanf(call[strings.LastIndexByte(call, '/')+1:], CallPrefix+"%d_", &turn)
	return turn
}

// HandoffID returns the ID of a handoff, a child or a call in events: a UUID of version 5 made of the session of the call that made it,
// without the run. It is the same in each process, and says nothing of other handoffs.
func HandoffID(call string) string { return uuid.NewSHA1(handoffNamespace, []byte(call)).String() }

// handoffNamespace is the namespace of these IDs.
var handoffNamespace = uuid.MustParse("2f7c1e54-0b6d-5a0f-9d3b-416a77e290c8")

// IsStep reports whether a task is a step of the coordinator.
func IsStep(id task.ID) bool { return strings.HasPrefix(string(id), handoff.Coordinator+"/") }

// TaskOf returns the task, or the step of the coordinator, that a session is about.
func TaskOf(session string) task.ID {
	_, rest, _ := strings.Cut(session, "/") // behind the run
	id, more, _ := strings.Cut(rest, "/")
	if id == handoff.Coordinator {
		step, _, _ := strings.Cut(more, "/")
		id += "/" + step
	}
	return task.ID(id)
}

// ChildOf returns the part of a session, or of a Part, that names the child that it belongs to; empty
// for what belongs to the attempt at a task itself.
func ChildOf(session string) string {
	start := strings.Index(session, ChildPrefix)
	if start < 0 {
		return ""
	}
	end := start
	for strings.HasPrefix(session[end:], ChildPrefix) {
		end += len(ChildPrefix)
		if next := strings.IndexByte(session[end:], '/'); next >= 0 {
			end += next
		} else {
			end = len(session)
		}
	}
	return session[start:end]
}
