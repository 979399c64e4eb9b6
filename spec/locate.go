package spec

import (
	"github.com/runteam/runteam/team"
)

type places struct{}

// Load reads the spec that o names.
func Load(o Options) (*File, error) { return nil, &Error{} }

// Build connects each agent and makes the team.
func (f *File) Build(connect func(Agent) (team.Agent, error)) (*team.Team, error) { return nil, nil }

// Locate gives task.Problems their places.
func (f *File) Locate(err error) error { return err }
