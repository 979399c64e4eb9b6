package engine

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/runteam/runteam/internal/event"
)

// subscribers returns those of the options, and one that writes the log if the
// team's logger takes debug records.
func (r *runScope) subscribers() []func(event.Event) {
	subs := r.options.Subscribers
	if r.team.Log.Enabled(context.Background(), slog.LevelDebug) {
		subs = append(subs[:len(subs):len(subs)], r.logEvent)
	}
	return subs
}

// logEvent logs calls of agents, retries and gate decisions. Events are in the
// caller's form already. The message of an error may quote what agents and endpoints
// wrote, so the log has the code instead.
func (r *runScope) logEvent(e event.Event) {
	t := r.team
	about := []slog.Attr{slog.String("task", cmp.Or(e.Title, string(e.Task))), slog.String("agent", e.Agent), slog.Int("attempt", e.Attempt)}
	log := func(message string, attrs ...slog.Attr) {
		t.Log.LogAttrs(context.Background(), slog.LevelDebug, message, append(about, attrs...)...)
	}
	model := slog.String("model", t.Find(e.Agent).FirstModel())
	switch e.Type {
	case event.AgentStart:
		log("agent called", model, slog.Int("bytes", e.Bytes))
	case event.AgentComplete:
		call := orZero(e.Call)
		log("agent finished", model, slog.String("answered_by", call.Model), slog.String("endpoint", call.Endpoint), slog.String("request_id", call.RequestID),
			slog.String("finish_reason", call.FinishReason), slog.Duration("duration", e.Duration), slog.Int("input_tokens", e.Input), slog.Int("output_tokens", e.Output),
			slog.Bool("partial", e.Partial), slog.Int("bytes", e.Bytes), slog.String("status", string(e.Status)), slog.String("code", e.Code))
	case event.Warning:
		if e.Task != "" {
			if t.Find(e.Agent).HasFallback() {
				model = slog.Attr{} // the event does not say which model of the chain failed
			}
			log("model call retried", model, slog.String("code", e.Code), slog.Duration("wait", e.Wait))
		} else {
			t.Log.LogAttrs(context.Background(), slog.LevelDebug, "warning", slog.String("message", e.Message))
		}
	case event.Limited:
		log("endpoint limited", slog.Duration("wait", e.Wait))
	case event.TaskRetry:
		log("task retried", slog.String("code", e.Code), slog.Duration("wait", e.Wait))
	case event.Budget:
		log("model call refused", model, slog.String("code", e.Code))
	case event.TaskComplete:
		if e.Reused != "" {
			log("cached answer used", slog.String("run", e.Reused))
		}
	case event.Handed:
		h := e.Handoff
		log("gate decision", slog.String("from", h.From), slog.String("to", h.To), slog.String("source", string(h.Source.Kind)+" "+h.Source.Name),
			slog.Any("verdict", h.Verdict), slog.String("reason", string(h.Reason)), slog.String("rule", string(h.Rule)), slog.Any("mode", h.Mode),
			slog.Any("label_before", h.Label), slog.Any("label_after", h.Delivered), slog.Int("bytes_before", h.Before.Bytes), slog.Int("bytes_after", h.After.Bytes))
	}
}
