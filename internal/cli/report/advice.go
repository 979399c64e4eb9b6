package report

import (
	"cmp"
	"errors"
	"regexp"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
)

// advice says what to do about failures whose message does not say it.
var advice = map[string]string{
	gate.CodeWithheld:     `see "runteam plan" for who reads what by which rule; "runteam explain" shows what was withheld and why`,
	codes.Journal:         "make room for the journal, or store the run elsewhere with --journal FILE",
	codes.Record:          "make room for the file of --trace, or name another one",
	gate.CodeTooLarge:     "have the previous task answer in fewer words, or depend on it as output instead of structured",
	codes.PromptTooLarge:  "use fewer or shorter inputs and dependencies in this task",
	codes.Schema:          `loosen outputSchema, describe the form in the task, or use a stronger model; "runteam show RUN TASK" prints the answer`,
	codes.Guard:           `"runteam show RUN TASK" prints the answer`,
	codes.Timeout:         "raise timeoutMs of the task or the agent, or use a faster model",
	codes.MaxTurns:        "raise maxTurns of the agent",
	codes.Loop:            "say in the task when to stop, give the agent a tool that answers it, or raise maxRepetitions of its loopDetection",
	codes.ToolCall:        "give the tools to the agent and the task, or let plans grant them with coordinator: {mayGrant: [tools]}; else tell the model in its system prompt to answer in text",
	"MODEL_RATE_LIMITED":  "wait and run again, or lower --max-concurrency",
	"MODEL_SERVER_ERROR":  "run again later, or set maxRetries of the task",
	"MODEL_CUT":           "run again, or set maxRetries of the task",
	"MODEL_EMPTY":         "run again, or set maxRetries of the task",
	"MODEL_UNKNOWN_MODEL": "write another model in the spec, or give --model",
	"MODEL_NO_CREDIT":     "add credit to the account, or use another endpoint",
	"MODEL_TOO_LARGE":     "set maxTokens of the agent",
	codes.Budget:          "raise --max-token-budget, or maxTokenBudget of the spec or the agent",
	codes.CostBudget:      "raise --max-cost-budget, or maxCostBudget of the spec or the agent",
	codes.NoPrice:         "add the model to prices in the spec",
}

// adviceOn says what to do about a failed task, of a run that is stored or not.
func adviceOn(t *engine.TaskResult, unstored bool) string {
	switch {
	case errors.Is(t.Error, engine.ErrPersonTimeout):
		return "resume the run to ask again, or raise timeoutMs of the task"
	case errors.Is(t.Error, engine.ErrReplyTimeout):
		return "raise timeoutMs of the task, or have its agent wait less: response of send_handoff has a timeoutMs too"
	case t.Error.Code == codes.Schema && t.Assignee == handoff.Computed:
		return "correct the template, or loosen outputSchema"
	}
	text := advice[t.Error.Code]
	if unstored {
		text = stored.ReplaceAllString(text, "without --no-journal, $0")
	}
	return text
}

// stored matches a command that needs a stored run.
var stored = regexp.MustCompile(`"runteam (show|explain)`)

// coordinatorAdvice says what to do about failures in a step of the coordinator.
var coordinatorAdvice = map[string]string{
	gate.CodeWithheld:    "lower the classification of the goal, raise coordinator.accepts, or name the clearance of its endpoint under endpoints",
	codes.PromptTooLarge: "shorten the goal, or the descriptions of the agents",
	codes.Timeout:        "raise timeoutMs of the coordinator, or give it a faster model",
	codes.MaxTurns:       "raise maxTurns of the coordinator",
	codes.ToolCall:       "tell the coordinator in its instructions to answer in text: it has no tools",
	"MODEL_SERVER_ERROR": "run again later",
	"MODEL_CUT":          "run again, or give the coordinator another model",
	"MODEL_EMPTY":        "run again, or give the coordinator another model",
	"MODEL_TOO_LARGE":    "ask for a shorter answer in the goal",
}

// CoordinatorAdvice says what a failure of the coordinator means for the run and what to do about it.
func CoordinatorAdvice(e *engine.TaskError) string {
	step := cmp.Or(coordinatorAdvice[e.Reason], advice[e.Reason])
	switch e.Code {
	case codes.PlanInvalid:
		return "nothing was run: say more in the goal or in coordinator.instructions, give the coordinator a stronger model, or write the tasks yourself"
	case codes.Decomposition:
		return sentences("there is no plan, so nothing was run", step)
	case codes.Synthesis:
		return sentences("the tasks ran, and their results are printed", step)
	}
	return step
}

// sentences joins a fact and an advice, which may be empty.
func sentences(fact, advice string) string {
	if advice == "" {
		return fact
	}
	return fact + ": " + advice
}
