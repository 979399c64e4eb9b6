package inspector

import (
	"cmp"
	"net/http"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/steer"
)

// A commandBody is the body of a request that steers a run.
type commandBody struct {
	Agent          string `json:"agent"`
	Text           string `json:"text"`
	Classification string `json:"classification"`
	Reason         string `json:"reason"`
}

// steerRun returns the function of a route that sends a command of a kind to a run.
func steerRun(kind steer.Kind) func(*request) error {
	return func(q *request) error {
		w, r := q.w, q.r
		var body commandBody
		if err := decode(r, &body); err != nil {
			return err
		}
		c := steer.Command{Kind: kind, Task: r.PathValue("task"), Agent: body.Agent, Text: body.Text, Reason: body.Reason, By: q.Viewer.By}
		if len(body.Text) > steer.MaxText || len(body.Reason) > steer.MaxText {
			return &Error{Code: TooLarge, Message: "a text of a command has more than 64 KiB"}
		}
		if body.Classification != "" {
			level, err := label.ParseClassification(body.Classification)
			if err != nil {
				return &Error{Code: Invalid, Message: err.Error(), Problems: []Problem{{Pointer: "/classification", Message: err.Error()}}}
			}
			c.Classification = level
		}
		taken, err := q.Steerer.Steer(r.Context(), r.PathValue("run"), c)
		if err != nil {
			return err
		}
		return q.h.write(w, http.StatusOK, taken)
	}
}

// answer answers a question.
func (q *request) answer() error {
	w, r := q.w, q.r
	var a Answer
	if err := decode(r, &a); err != nil {
		return err
	}
	if (a.Fields != nil) == (a.Text != "") {
		return &Error{Code: Invalid, Message: "an answer needs either fields or a text", Hint: "send exactly one of them"}
	}
	taken, err := q.Answerer.Answer(r.Context(), r.PathValue("run"), r.PathValue("question"), a)
	if err != nil {
		return err
	}
	return q.h.write(w, http.StatusOK, map[string]bool{"taken": taken})
}

// estimate says what a run could cost, without starting it.
func (q *request) estimate() error {
	w, r := q.w, q.r
	var s Start
	if err := decode(r, &s); err != nil {
		return err
	}
	release, err := q.h.turn(r.Context())
	if err != nil {
		return err
	}
	defer release()
	document, err := q.Starter.Estimate(r.Context(), s)
	if err != nil {
		return err
	}
	return q.h.write(w, http.StatusOK, document)
}

// say sends a message of a chat.
func (q *request) say() error {
	w, r := q.w, q.r
	var m Message
	if err := decode(r, &m); err != nil {
		return err
	}
	if (m.Spec == "") == (m.Session == "") {
		return &Error{Code: Invalid, Message: "a message is for a spec or for a session", Hint: "send exactly one of spec and session"}
	}
	turn, err := q.Starter.Say(r.Context(), m)
	if err != nil {
		return err
	}
	return q.h.write(w, http.StatusAccepted, turn)
}

// start starts a run.
func (q *request) start() error {
	w, r := q.w, q.r
	var s Start
	if err := decode(r, &s); err != nil {
		return err
	}
	if len(s.Reason) > steer.MaxText {
		return &Error{Code: TooLarge, Message: "the reason has more than 64 KiB"}
	}
	if s.Queue != nil {
		return q.submit(s)
	}
	run, err := q.Starter.Start(r.Context(), s)
	if err != nil {
		return err
	}
	return q.h.write(w, http.StatusAccepted, map[string]string{"runId": run})
}

// submit stores a run for a worker.
func (q *request) submit(s Start) error {
	of := *s.Queue
	if err := naming.CheckLine(of.ID); err != nil {
		return &Error{Code: Invalid, Message: "the ID of the submission: " + err.Error(), Problems: []Problem{{Pointer: "/queue/id", Message: err.Error()}}}
	}
	release, err := q.h.turn(q.r.Context())
	if err != nil {
		return err
	}
	defer release()
	of.By = cmp.Or(q.sender.Caller, q.Viewer.By)
	run, added, err := q.Starter.Submit(q.r.Context(), s, of)
	if err != nil {
		return err
	}
	return q.h.write(q.w, http.StatusAccepted, map[string]any{"runId": run, "added": added})
}

// signOutPath is the path of sign-outs, in the API.
const signOutPath = "/sign-out"

// signOut ends the session of the browser that sent the request, if it has one.
func (q *request) signOut() error {
	if q.sender.isSession {
		access := &q.h.o.Access
		access.Logins.end(&q.sender)
		none := access.cookie(q.r, "")
		none.MaxAge = -1
		http.SetCookie(q.w, none)
	}
	return q.h.write(q.w, http.StatusOK, map[string]bool{"signedOut": q.sender.isSession})
}
