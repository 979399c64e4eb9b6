package inspector

import (
	"net/http"

	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/steer"
)

// An order is the body of a request that steers a run.
type order struct {
	Agent          string `json:"agent"`
	Text           string `json:"text"`
	Classification string `json:"classification"`
	Reason         string `json:"reason"`
}

// steerRun answers a request that steers a run, by the kind of its command.
func steerRun(kind steer.Kind) func(*Handler, http.ResponseWriter, *http.Request) error {
	return func(h *Handler, w http.ResponseWriter, r *http.Request) error {
		var o order
		if err := decode(r, &o); err != nil {
			return err
		}
		c := steer.Command{Kind: kind, Task: r.PathValue("task"), Agent: o.Agent, Text: o.Text, Reason: o.Reason, By: h.o.Viewer.By}
		if len(o.Text) > steer.MaxText || len(o.Reason) > steer.MaxText {
			return &Error{Code: TooLarge, Message: "a text of a command has more than 64 KiB"}
		}
		if o.Classification != "" {
			level, err := label.ParseClassification(o.Classification)
			if err != nil {
				return &Error{Code: Invalid, Message: err.Error(), Problems: []Problem{{Pointer: "/classification", Message: err.Error()}}}
			}
			c.Classification = level
		}
		taken, err := h.o.Steerer.Steer(r.Context(), r.PathValue("run"), c)
		if err != nil {
			return err
		}
		return h.write(w, http.StatusOK, taken)
	}
}

// answer answers a question.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request) error {
	var a Answer
	if err := decode(r, &a); err != nil {
		return err
	}
	if (a.Fields != nil) == (a.Text != "") {
		return &Error{Code: Invalid, Message: "an answer is fields or a text", Hint: "send one of them"}
	}
	taken, err := h.o.Steerer.Answer(r.Context(), r.PathValue("run"), r.PathValue("question"), a)
	if err != nil {
		return err
	}
	return h.write(w, http.StatusOK, map[string]bool{"taken": taken})
}

// start starts a run.
func (h *Handler) start(w http.ResponseWriter, r *http.Request) error {
	var s Start
	if err := decode(r, &s); err != nil {
		return err
	}
	run, err := h.o.Starter.Start(r.Context(), s)
	if err != nil {
		return err
	}
	return h.write(w, http.StatusAccepted, map[string]string{"runId": run})
}
