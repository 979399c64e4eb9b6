package event

import (
	"time"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// New returns an event of the engine in its public form. Package team calls it.
func New(e event.Event) Event {
	public := Event{
		Seq: e.Seq, Type: string(e.Type), Time: e.Time, Run: e.Run,
		Task: e.Task, Title: e.Title, Name: e.Name, Agent: e.Agent, Attempt: e.Attempt, Child: e.Child,
		Data: dataOf(&e), line: &e,
	}
	if e.Type == event.RunStart {
		public.Name = "" // that of the team
	}
	return public
}

// dataOf returns what happened, or nil for an event of an unknown type.
func dataOf(e *event.Event) any {
	problem := Problem{Code: e.Code, Message: e.Message, Wait: e.Wait}
	cause := Cause{Root: e.Root, Because: e.Because}
	switch e.Type {
	case event.RunStart:
		return RunStart{Team: e.Name, Tasks: e.Tasks}
	case event.RunComplete:
		return RunComplete{Status: e.Code, Work: workOf(e)}
	case event.PlanReady:
		return PlanReady{Tasks: planOf(e.Plan)}
	case event.TaskReady:
		return TaskReady{}
	case event.TaskStart:
		return TaskStart{}
	case event.TaskWaiting:
		return TaskWaiting{Tool: e.From}
	case event.TaskRetry:
		return TaskRetry(problem)
	case event.TaskComplete:
		return TaskComplete{Bytes: e.Bytes, Work: workOf(e)}
	case event.TaskSkipped:
		return TaskSkipped{problem, cause}
	case event.TaskNotNeeded:
		return TaskNotNeeded{problem.Message, cause}
	case event.Error:
		return TaskFailed{problem, cause, e.Accepted}
	case event.AllComplete:
		return AllComplete{}
	case event.AgentStart:
		return AgentStart{ID: e.ID, Model: e.Model, Bytes: e.Bytes, Receipt: e.Receipt}
	case event.AgentComplete:
		return AgentComplete{ID: e.ID, Status: e.Status, Bytes: e.Bytes, Work: workOf(e), Problem: problem}
	case event.ToolStart:
		return ToolStart{ID: e.ID, Tool: e.From}
	case event.ToolComplete:
		return ToolComplete{ID: e.ID, Tool: e.From, Failed: e.Status == task.Failed, Duration: e.Duration}
	case event.MessageSent, event.Message, event.ReplyWait, event.ReplyEnd:
		return messageOf(e)
	case event.AgentSpawn, event.AgentResult:
		return childOf(e)
	case event.AgentTransfer:
		return AgentTransfer{From: e.From, To: e.To, Turn: e.Turn}
	case event.Budget:
		return BudgetExceeded{Problem: problem, Own: e.OwnBudget}
	case event.Handed:
		return handoffOf(e.Handoff)
	case event.Lowered, event.Endorsed, event.Renewed:
		return EntryUsed{From: e.From, Entry: e.Code}
	case event.Steered:
		return Steered{Kind: steer.Kind(e.Code), By: e.From, Reason: e.Message}
	case event.Reveal:
		return Reveal(problem)
	case event.Warning:
		return Warning(problem)
	case event.Limited:
		return RateLimited(problem)
	}
	return nil
}

func messageOf(e *event.Event) any {
	switch e.Type {
	case event.MessageSent:
		return MessageSent{ID: e.ID, To: e.To, Bytes: e.Bytes}
	case event.ReplyWait:
		return ReplyWait{ID: e.ID, Agent: e.From, Timeout: e.Wait}
	case event.ReplyEnd:
		return ReplyEnd{ID: e.ID, Agent: e.From, Code: e.Code, Duration: e.Duration}
	}
	return Message{ID: e.ID, From: e.From, Bytes: e.Bytes}
}

func childOf(e *event.Event) any {
	if e.Type == event.AgentSpawn {
		s := AgentSpawn{Child: e.Child, Agent: e.To, Bytes: e.Bytes}
		if e.Spawn != nil {
			s.Tools, s.Timeout = e.Tools, time.Duration(e.TimeoutMs)*time.Millisecond
		}
		return s
	}
	return AgentResult{Child: e.Child, Agent: e.From, Status: e.Status, Code: e.Code, Bytes: e.Bytes, Duration: e.Duration}
}

func workOf(e *event.Event) Work {
	return Work{Usage: e.Usage(), Duration: e.Duration, Reused: e.Reused, Partial: e.Partial, Truncated: e.Truncated, Call: e.Call}
}

func planOf(plan []event.Planned) []Planned {
	tasks := make([]Planned, len(plan))
	for i, p := range plan {
		tasks[i] = Planned{p.Task, p.Title, p.Written, p.Agent, p.Assigned, p.DependsOn}
	}
	return tasks
}

func handoffOf(h *event.Handoff) Handoff {
	if h == nil {
		return Handoff{}
	}
	return Handoff{
		From: h.From, Kind: h.Source.Kind, Source: h.Source.Name, Verdict: h.Verdict.String(), Reason: h.Reason, Detail: h.Detail,
		Mode: h.Mode, Rule: h.Rule, Line: h.Line, Entries: h.Entries,
		Label: h.Label, Delivered: h.Delivered, Bytes: h.Before.Bytes, Sent: h.After.Bytes, Results: h.Before.Outputs, ResultsSent: h.After.Outputs,
		Included: h.After.Included, Excluded: h.After.Excluded, Redacted: h.Redacted, Revealed: h.Revealed,
		Coarse: h.Coarse, Translated: h.Translated,
	}
}
