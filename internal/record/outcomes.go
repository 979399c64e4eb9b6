package record

import "github.com/runteam/runteam/task"

// Outcomes counts the tasks of a run by how they ended. Tasks that have not ended
// are not counted.
type Outcomes struct {
	Completed int `json:"completed"`
	Failed    int `json:"failed"`    // by themselves, also those with an accepted failure
	Cancelled int `json:"cancelled"` // in progress when the run ended
	NotRun    int `json:"notRun"`    // ended without having begun: skipped, or a task that they depend on did not complete

	NotNeeded int `json:"notNeeded,omitempty"` // by a condition

	Accepted int `json:"failureAccepted,omitempty"` // of Failed, those after which the run can succeed

	Interrupted int `json:"interrupted,omitempty"` // in progress when the process of the run was gone
}

// Add counts a task by how it ended, and not at all if it has not ended. Root is the task because of which it did not
// complete; begun says that an attempt of it began, and accepted that its failure is.
func (o *Outcomes) Add(s task.Status, root task.ID, begun, accepted bool) {
	switch {
	case !s.Terminal():
	case s == task.Completed:
		o.Completed++
	case s == task.NotNeeded:
		o.NotNeeded++
	case s == task.Failed && root == "":
		if o.Failed++; accepted {
			o.Accepted++
		}
	case begun && root == "":
		o.Cancelled++
	default:
		o.NotRun++
	}
}

// suspended is the status of a run in which tasks wait for people.
const suspended = "suspended"

// IsSuspended reports whether what is left of the run waits for people.
func (e *RunEnd) IsSuspended() bool { return e.Status == suspended }

// Outcomes counts the tasks of a run that ended.
func (e *RunEnd) Outcomes() (o Outcomes) {
	for i := range e.Tasks {
		t := &e.Tasks[i]
		o.Add(t.Status, t.Root, t.Attempts > 0, t.Accepted)
	}
	return o
}
