package plan

import "errors"

// Conditions that a team or its tasks are refused for.
var (
	ErrNoAgents       = errors.New("no agents")
	ErrNoTasks        = errors.New("no tasks")
	ErrUnknownAgent   = errors.New("unknown agent")
	ErrUnknownInput   = errors.New("unknown input")
	ErrNoCoordinator  = errors.New("no coordinator")
	ErrNoPrice        = errors.New("the model has no price")
	ErrAnswerWithheld = errors.New("the caller may not see the answer")
	ErrAssertion      = errors.New("assertion does not hold")
	ErrUnconfined     = errors.New("the command is not confined")
)
