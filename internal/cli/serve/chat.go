package serve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/run"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/cli/view"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/roles"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
)

// A sessionDocument is a session of a chat as the viewer may see it, in JSON.
type sessionDocument struct {
	Session string         `json:"session"`
	Agent   string         `json:"agent"`
	Turns   []turnDocument `json:"turns"` // without those that are not there for the viewer

	CanContinue bool `json:"canContinue"` // this server serves the spec
}

// A turnDocument is a turn of a session, in JSON.
type turnDocument struct {
	Turn    int                  `json:"turn"`
	Run     string               `json:"runId"`
	Status  string               `json:"status"`
	Live    bool                 `json:"live"` // a process works on it
	Began   time.Time            `json:"startedAt"`
	Message string               `json:"message"` // what the person wrote, with personal data and secrets redacted, or why it is withheld
	Label   label.Classification `json:"label"`   // of the message
	Answer  string               `json:"answer"`  // empty if there is none
}

// Session returns the session that a run is a turn of; see [inspector.Runs].
func (d *documents) Session(ctx context.Context, name string) (any, error) {
	if _, err := journals.Find(ctx, d.j, name); err != nil {
		return nil, problem(err)
	}
	turns, err := d.j.LoadSession(ctx, name)
	if errors.Is(err, journal.ErrNoSession) {
		return nil, &inspector.Error{Code: inspector.NotFound, Message: "the run is no turn of a session"}
	}
	if err != nil {
		return nil, problem(journals.ReadError(ctx, err))
	}
	doc := sessionDocument{Session: turns[0].Session, Agent: turns[0].Agent, Turns: []turnDocument{}, CanContinue: d.starts != nil && d.has(roles.Operator, nil) && launcher{d.guest, d.starts}.serves(ctx, turns[0].Run) == nil}
	for i := range turns {
		t, err := d.turn(ctx, &turns[i])
		if wrong, ok := errors.AsType[*inspector.Error](err); ok && wrong.Code == inspector.NotFound {
			continue // it is not there for the viewer
		}
		if err != nil {
			return nil, err
		}
		doc.Turns = append(doc.Turns, t)
	}
	return doc, nil
}

// turn returns the document of a turn.
func (d *documents) turn(ctx context.Context, t *record.StoredTurn) (doc turnDocument, err error) {
	_, err = d.with(ctx, t.Run, func(k *journals.StoredRun) (any, error) {
		r := view.Of(k)
		doc = turnDocument{Turn: t.Turn, Run: t.Run, Status: r.Status, Live: k.Live(), Began: t.Began, Label: t.Label}
		switch clean, _, _, err := redact.All().TextRevealing(ctx, t.Text, nil); {
		case t.Missing != "" || t.Label > d.clearance(&k.Summary):
			doc.Message = "[withheld: " + t.Label.String() + "]"
		case err != nil:
			return nil, err
		default:
			doc.Message = clean
		}
		if r.Status == string(engine.StatusOK) {
			doc.Answer = r.Output
		}
		return nil, nil
	})
	return doc, err
}

// Say sends a message of a chat; see [inspector.Starter]. It returns once the turn has begun.
func (s launcher) Say(ctx context.Context, given inspector.Message) (any, error) {
	l, level, err := s.launchTurn(ctx, &given)
	if err != nil {
		return nil, err
	}
	serving, err := s.starts.take()
	if err != nil {
		return nil, err
	}
	begun, ended := make(chan turnBegun, 1), make(chan error, 1)
	go func() {
		defer s.starts.release()
		ended <- s.say(serving, l, given.Text, level, begun)
	}()
	select {
	case t := <-begun:
		return t, nil
	case err := <-ended:
		select {
		case t := <-begun:
			return t, nil
		default:
			return nil, problem(err)
		}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// A turnBegun is a turn that has begun, in JSON.
type turnBegun struct {
	Session string `json:"session"`
	Turn    int    `json:"turn"`
	Run     string `json:"runId"`
}

// say has a message answered as the command chat does, after the last turn of the session if that did not end.
func (s launcher) say(ctx context.Context, l run.Launch, text string, level label.Classification, begun chan<- turnBegun) error {
	turns, err := run.LaunchTurns(ctx, s.con, l)
	if err != nil {
		return err
	}
	defer turns.Close()
	at := turns.Session()
	attend := func(id string) *run.Attendant {
		a := s.live.attend(id)
		a.Answers = true
		return a
	}
	if _, before, unfinished := at.Unfinished(); unfinished {
		if _, err := s.steerable(ctx, before); err != nil { // it may be of somebody else
			return err
		}
		if _, err := turns.Resume(ctx, run.View{Attend: attend}); err != nil {
			return err
		}
		if text := turns.Problem(); text != "" {
			return &inspector.Error{Code: inspector.Conflict, Message: "the turn before was not answered", Hint: strings.TrimSpace(text)}
		}
	}
	t := turnBegun{Session: at.ID(), Turn: at.Turns() + 1}
	v := run.View{Attend: func(id string) *run.Attendant {
		t.Run = id
		return attend(id)
	}, Events: func(event.Event) {
		select {
		case begun <- t:
		default: // it was said
		}
	}}
	_, err = turns.Send(ctx, text, level, v)
	if err != nil && ctx.Err() == nil {
		s.con.Say("runteam: a turn was not answered: %s", terminal.Clean(err.Error()))
	}
	return err
}

// launchTurn returns the launch for a message, and its label.
func (s launcher) launchTurn(ctx context.Context, given *inspector.Message) (l run.Launch, level label.Classification, err error) {
	if strings.TrimSpace(given.Text) == "" {
		return l, 0, &inspector.Error{Code: inspector.Invalid, Message: "the message is empty", Problems: []inspector.Problem{{Pointer: "/text", Message: "write a text"}}}
	}
	level = label.Internal
	if given.Label != "" {
		if level, err = label.ParseClassification(given.Label); err != nil {
			return l, 0, &inspector.Error{Code: inspector.Invalid, Message: err.Error(), Problems: []inspector.Problem{{Pointer: "/label", Message: err.Error()}}}
		}
	}
	if given.Session != "" {
		found, err := s.steerable(ctx, given.Session)
		if err != nil {
			return l, 0, problem(err)
		}
		if l, err = s.launchOf(found.Spec); err == nil {
			err = s.seesSession(ctx, found.Run)
		}
		if err != nil {
			return l, 0, err
		}
		l.Resume = found.Run
		return l, level, s.serves(ctx, found.Run)
	}
	of, err := s.starts.find(given.Spec)
	if err == nil {
		l, err = s.launchOf(of.spec)
	}
	if err != nil || of.Chat == nil {
		return l, 0, &inspector.Error{Code: inspector.NotFound, Message: fmt.Sprintf("no spec %q with a chat is served", given.Spec), Hint: "GET " + inspector.API + "/specs lists the specs"}
	}
	l.Spec = *s.starts.flags.spec(of.path)
	return l, level, nil
}

// seesSession returns an error if the session of a run has turns that are not there for the guest, from which an answer would be made.
func (s launcher) seesSession(ctx context.Context, id string) error {
	if s.person == "" {
		return nil
	}
	turns, err := s.whole.LoadSession(ctx, id)
	if errors.Is(err, journal.ErrNoSession) {
		return nil // which is said later
	}
	for i := range turns {
		if err == nil {
			_, err = s.j.Find(ctx, turns[i].Run)
		}
	}
	if errors.Is(err, journal.ErrUnknownRun) {
		return &inspector.Error{Code: inspector.Conflict, Message: "others have continued this session, with turns that are not there for you", Hint: "begin a new one"}
	}
	return problem(journals.ReadError(ctx, err))
}

// serves returns an error unless a run is of a served spec, and was begun in this folder.
func (s launcher) serves(ctx context.Context, id string) error {
	stored, err := s.steers.LoadStart(ctx, id)
	if err != nil {
		return problem(journals.ReadError(ctx, err))
	}
	of := journals.InvocationOf(&stored.Info)
	here, err := s.con.WorkDir.Getwd()
	if err != nil || of.Folder != here || !s.starts.isServed(of.Found) {
		return &inspector.Error{Code: inspector.Conflict, Message: "this server does not serve the spec of the session", Hint: "continue it with runteam chat --resume " + journals.ShortRun(id)}
	}
	return nil
}
