package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/promptview"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// An OpenQuestion is a question without an answer, as the caller of its run may see it.
type OpenQuestion struct {
	Run      string
	ID       string
	Task     task.ID
	Title    string
	Name     string
	Tool     string
	Call     string
	Approval string
	Agent    string
	Users    []string // who may answer; none if anybody may
	Asked    time.Time
	Label    label.Classification
	Prompt   string
	Asks     promptview.Asked // of the prompt
	Schema   string
}

// A PersonAnswer is what a person answers.
type PersonAnswer struct {
	By     string // one of the users of the question, if it has any
	Text   string
	Reason string

	// Apart refuses the answer if By has answered another question of the run as another person, whether to approve something
	// or for a task. Of two such answers at the same moment, one is refused. Names are compared as they are.
	Apart bool

	// NotStarter refuses the answer if it approves something and By has started the run; see [Info]. An answer that is the
	// result of a task approves nothing.
	NotStarter bool
}

// ErrAnswerForm reports an answer that is not what its question asks for.
var ErrAnswerForm = errors.New("the answer does not fit")

// ExperimentCommand is the command of a run that repeats another one without some of its context.
// Such a run is not resumed.
const ExperimentCommand = "replay"

// MaxAnswer is the most bytes of an answer.
const MaxAnswer = 1 << 20

// OpenQuestions returns the open questions of a run, which is named as for [Journal.Find], or with an
// empty name those of all runs, the newest first. Runs that can use no answer have none.
func (a *archive) OpenQuestions(ctx context.Context, run string) (all []OpenQuestion, err error) {
	var runs []Summary
	if run == "" {
		runs, err = a.Newest(ctx, "", 1<<31-1)
	} else {
		runs = make([]Summary, 1)
		runs[0], err = a.Find(ctx, run)
	}
	if err != nil {
		return nil, err
	}
	for i := range runs {
		if runs[i].Status == "ok" || runs[i].Command == ExperimentCommand { // neither is resumed
			continue
		}
		of, err := openQuestions(ctx, a, runs[i].Run)
		if err != nil && (run != "" || !errors.Is(err, ErrUnknownRun)) { // else it was removed meanwhile
			return nil, err
		}
		all = append(all, of...)
	}
	return all, nil
}

// openQuestions returns the open questions of the run with an ID, in the order of its tasks.
func openQuestions(ctx context.Context, a *archive, run string) (open []OpenQuestion, err error) {
	list, err := a.Questions(ctx, run)
	if err != nil {
		return nil, err
	}
	place := map[string]int{} // of a question, by its ID: that of its task; a plan has none, and is first
	for _, q := range list {
		if !q.Open() {
			continue
		}
		t, err := a.TraceTask(ctx, run, string(q.Task))
		if err != nil {
			return nil, err
		}
		name := ""
		at := slices.IndexFunc(t.Tasks(), func(known trace.Task) bool { return known.ID == q.Task })
		if place[q.ID()] = at; at >= 0 {
			name = t.Tasks()[at].Name
		}
		shown, asks := shownIn(t, q)
		open = append(open, OpenQuestion{run, q.ID(), q.Task, q.Title, name, q.Tool, q.Call, q.Approval, q.Agent, q.Users, q.Time, q.Label, shown, asks, q.Schema})
	}
	slices.SortStableFunc(open, func(a, b OpenQuestion) int { return place[a.ID] - place[b.ID] })
	return open, nil
}

// shownIn returns the prompt of a question as the caller of the run may see it, and what it asks.
func shownIn(t *trace.Trace, q *runstate.Question) (shown string, asks promptview.Asked) {
	for i := range t.Prompts {
		if p := &t.Prompts[i]; p.Receipt.Session == q.Session {
			return p.Shown.AsText(), p.Shown.Asks()
		}
	}
	return "[withheld]", promptview.Asked{Decide: "[withheld]"}
}

// AnswerQuestion answers the question of a run with an ID, as [Journal.Answer] does. The error wraps
// [ErrAnswerForm] if the answer is not what the question asks for, and [record.ErrAnswerer] if By may not give it.
func (j *Journal) AnswerQuestion(ctx context.Context, run, id string, answer PersonAnswer) (taken bool, err error) {
	if strings.TrimSpace(answer.By) == "" {
		return false, errors.New("an answer needs the name of who gives it: set By")
	}
	for _, of := range []struct{ name, text string }{{"the name of who answers", answer.By}, {"the reason", answer.Reason}} {
		if !utf8.ValidString(of.text) {
			return false, fmt.Errorf("%w: %s is not valid UTF-8", ErrAnswerForm, of.name)
		}
	}
	return j.answer(ctx, run, withID(id), answer.rules(), func(q *runstate.Question) (record.Answer, error) {
		return record.Answer{By: answer.By, Time: j.now(), Reason: answer.Reason, Text: answer.Text}, checkAnswer(q, answer.Text)
	})
}

// CheckAnswerer returns the error with which [Journal.AnswerQuestion] now refuses By, or nil. It wraps [record.ErrAnswerer].
func (a *archive) CheckAnswerer(ctx context.Context, run, id string, answer PersonAnswer) error {
	r, err := a.find(ctx, run)
	if err != nil {
		return err
	}
	list, err := a.questions(ctx, r)
	if err != nil {
		return err
	}
	q, err := theQuestion(list, withID(id))
	if err != nil {
		return err
	}
	return cmp.Or(q.CheckUser(answer.By), answer.rules().check(&r, q, answer.By, list))
}

// withID returns whether a question has an ID.
func withID(id string) func(*runstate.Question) bool {
	return func(q *runstate.Question) bool { return q.ID() == id }
}

// rules returns what an answer asks for about who gives it.
func (a *PersonAnswer) rules() answerRules { return answerRules{a.Apart, a.NotStarter} }

// notJSON says why a text is not JSON: one that was meant as a value lacks its quotes.
func notJSON(text string, err error) string {
	if text = strings.TrimSpace(text); text == "" || strings.ContainsAny(text[:1], "[{\"") {
		return fmt.Sprintf("it is not JSON: %v", err)
	}
	example := "send"
	if len(text) <= 40 && strconv.Quote(text) == `"`+text+`"` {
		example = text
	}
	return fmt.Sprintf("text is not JSON: a text needs quotes, such as %q", strconv.Quote(example))
}

// checkAnswer returns an error that says what is expected if a text does not answer the question.
func checkAnswer(q *runstate.Question, text string) error {
	switch {
	case q.Missing != "":
		return fmt.Errorf("the form of the question cannot be read: it is %s", q.Missing)
	case len(text) > MaxAnswer:
		return fmt.Errorf("%w: it has more than 1 MiB", ErrAnswerForm)
	case !utf8.ValidString(text): // no line can hold it
		return fmt.Errorf("%w: it is not valid UTF-8", ErrAnswerForm)
	case q.Schema == "" && strings.TrimSpace(text) == "":
		return fmt.Errorf("%w: it is empty, and the question asks for a text", ErrAnswerForm)
	case q.Schema == "":
		return nil
	}
	s, err := schema.Parse(q.Schema)
	if err != nil {
		return err
	}
	v, err := jsonvalue.Parse(text)
	if err != nil {
		return fmt.Errorf("%w: %s", ErrAnswerForm, notJSON(text, err))
	}
	err = s.Validate(v)
	switch {
	case err != nil && q.Schema == record.RefusalForm:
		return fmt.Errorf("%w: %s", ErrAnswerForm, record.RefusedUnseen)
	case err != nil:
		return fmt.Errorf("%w: %s", ErrAnswerForm, schema.Problem(err))
	}
	return nil
}
