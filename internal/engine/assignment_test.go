package engine_test

import (
	"testing"

	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

func open(title string, deps ...string) task.Spec {
	return task.Spec{Title: title, Description: "Work on it.", DependsOn: task.On(deps...)}
}

func TestNoAgentCanBeAssigned(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, member("ada", never(t)), member("bob", never(t)))
	wants := func(r task.Requires) task.Spec {
		s := open("A")
		s.Requires = &r
		return s
	}
	above := open("A")
	above.Classification = label.Confidential
	named := wants(task.Requires{Capabilities: []string{"sql"}})
	named.Assignee = "ada"
	for _, tt := range []struct {
		name string
		give task.Spec
		want fault
	}{
		{"a capability", wants(task.Requires{Capabilities: []string{"sql"}}), fault{"/tasks/0/requires", "sql", assign.ErrNoAgent}},
		{"a tool", wants(task.Requires{Tools: []string{"bash"}}), fault{"/tasks/0/requires", "bash", assign.ErrNoAgent}},
		{"a backend", wants(task.Requires{Backend: "docker"}), fault{"/tasks/0/requires", "docker", assign.ErrNoAgent}},
		{"a provider", wants(task.Requires{Provider: "anthropic"}), fault{"/tasks/0/requires", "anthropic", assign.ErrNoAgent}},
		{"a clearance", above, fault{"/tasks/0/assignee", "confidential", assign.ErrNoAgent}},
		{"an agent that lacks it", named, fault{"/tasks/0/requires", "sql", assign.ErrRequires}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := tm.RunTasks(t.Context(), []task.Spec{tt.give}, nil)
			requireFaults(t, err, tt.want)
		})
	}
}
