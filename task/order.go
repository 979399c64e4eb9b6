package task

import "time"

// New returns the task that a spec describes, pending, and created and updated at the
// given time. The error is [Problems]. New needs no graph: a reference that is a UUID is an
// ID, and any other is the title of a task that need not exist yet. Keys are not resolved,
// because they look like titles.
func New(spec Spec, at time.Time) (Task, error) {
	found := &findings{}
	t := Task{}
	if titled(0, spec.Title, found) {
		t.ID = NewID(spec.Title)
	}
	fill(&t, &spec, at, 0, found)
	if t.When != nil {
		found.add(0, Problem{Pointer: pointer(0, "when"), Subject: subject(0, t.Title), Message: "when: a task that is made alone has no condition", Hint: "resolve all tasks together", Err: ErrInvalid})
	}
	seen := make(map[ID]bool, len(spec.DependsOn))
	for k, ref := range spec.DependsOn {
		id, p, bad := directRef(&t, k, ref, seen)
		if bad {
			found.add(0, p)
			continue
		}
		seen[id] = true
		t.DependsOn = append(t.DependsOn, resolved(&ref, id, spec.NeedToKnow))
	}
	if err := found.err(); err != nil {
		return Task{}, err
	}
	return t, nil
}

// Ready reports whether t is pending and every required dependency is completed. Optional
// dependencies and alternatives only need to have ended. A dependency that get does not find is
// not ready.
func Ready(t Task, get func(ID) (Task, bool)) bool {
	if t.Status != Pending {
		return false
	}
	for _, d := range t.DependsOn {
		up, ok := get(ID(d.Task))
		if !ok || up.Status != Completed && !((d.Optional || len(d.OneOf) > 0) && up.Status.Terminal()) {
			return false
		}
	}
	return true
}
