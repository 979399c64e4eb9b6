package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/report"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
)

// A TurnJob is the job of a command that runs the turns of a session.
type TurnJob struct {
	Job
	Resume string // a run of the session that is resumed, or the beginning of its ID
	Newest bool   // the newest session is resumed

	ReadLine func(ctx context.Context) (string, error) // reads what a person types; nil if nobody is asked on the terminal
}

// AddTo adds the flags of the job.
func (j *TurnJob) AddTo(cmd *cobra.Command, con *console.Console) {
	j.SpecFlags.AddTo(cmd)
	j.AddMergeFlagsTo(cmd)
	j.AddCoordinatorFlagTo(cmd)
	j.AnswerFlags.AddTo(cmd)
	j.Limits.AddTo(cmd, "each turn")
	f := cmd.Flags()
	f.StringVar(&j.Agent, "agent", "", "have the agent `NAME` answer (default: chat.agent of the spec, else the coordinator)")
	f.StringVar(&j.Resume, "resume", "", "continue the session of `RUN`: its ID or the beginning of it, or that of one of its turns")
	f.BoolVar(&j.Newest, "continue", false, "continue the newest session")
	f.BoolVar(&j.noInput, "no-input", false, "ask people nothing on the terminal: their questions stay open, and the turn is suspended")
	f.IntVar(&j.Concurrency, "max-concurrency", 0, "run at most `N` tasks at once (default: the spec's, else 5)")
	j.Journal.AddStoringTo(cmd)
	j.Journal.AddWorkspacesTo(cmd)
	j.Journal.AddNoJournalTo(cmd)
	journals.NewCompleter(con, &j.Journal).InputFlag(cmd)
}

// Check refuses flags that contradict each other.
func (j *TurnJob) Check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	resumes := j.Newest || changed("resume")
	switch {
	case j.Newest && changed("resume"):
		return exit.Usagef("--resume and --continue both name a session: leave one of them out")
	case resumes && j.Journal.None:
		return exit.Usagef("a session is resumed from its journal: leave out --no-journal")
	case resumes && j.Path != "":
		return exit.Usagef("a session is resumed with the spec that it has: leave out %s", j.Path)
	case changed("max-concurrency") && j.Concurrency < 1:
		return exit.Usagef("--max-concurrency %d: write 1 or more", j.Concurrency)
	}
	return errors.Join(j.Limits.Check(cmd), j.AnswerFlags.Check(cmd), j.Journal.Check(cmd))
}

// Turns runs the turns of a session, one after another, with one team.
type Turns struct {
	x       *execution
	session *engine.Session
	journal openJournal // without one, its journal is nil
	again   *resumed    // the last turn, if it did not end; nil if there is none
	Last    *engine.Result
}

// NewAnswer returns a printer of the answers of the session, on the stdout of a console.
func (t *Turns) NewAnswer(con *console.Console, turn int) *Answer {
	s := &answerStream{con: con}
	if agent := t.session.Agent(); agent != handoff.Coordinator {
		s.task = task.NewID(fmt.Sprintf("Turn %d", turn))
	}
	return &Answer{s}
}

// An Answer prints an answer while it is written.
type Answer struct{ stream *answerStream }

// Take prints what is new.
func (a *Answer) Take(d event.Delta) { a.stream.take(d) }

// End prints the rest of the answer, and an end of line.
func (a *Answer) End(answer string) error { return a.stream.end(answer) }

// A View takes what is shown of a turn while it works.
type View struct {
	Events func(event.Event)
	Stream func(event.Delta) // nil if the answer is shown when it is complete

	Attend func(run string) *Attendant // returns what shows and steers the turn, in place of Stream; may be nil
}

// OpenTurns begins or resumes a session. given reports whether a flag was given, and so replaces that of the session.
func OpenTurns(ctx context.Context, con *console.Console, given func(flag string) bool, j *TurnJob) (_ *Turns, err error) {
	j.Command, j.Progress, j.Chat, j.CallsTools, j.Journal.Program = "chat", "none", true, true, con.Program
	t := &Turns{x: &execution{con: con, job: &j.Job}}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	if j.Newest || j.Resume != "" {
		err = t.restore(ctx, given, con, j)
	}
	if err != nil {
		return nil, err
	}
	j.NoCalls = j.Offline
	if j.Results == nil {
		j.Results = j.Journal.Results(con)
	}
	file, err := j.Load(ctx, con)
	if err != nil {
		return nil, err
	}
	t.x.file = file
	tm, err := t.connect(ctx, j)
	if err != nil {
		return nil, located(t.x.file, err)
	}
	if t.journal.journal == nil && !j.Journal.None { // nothing is created before the spec can be used
		if t.journal, err = j.open(con, journals.ToStore); err != nil {
			return nil, err
		}
	}
	o := engine.SessionOptions{Agent: t.x.file.Answerer}
	if t.journal.journal != nil {
		o.Journal = t.journal.journal
		if !j.Offline {
			t.journal.shareLimits(con.Limits)
		}
	}
	if j.Resume != "" {
		t.session, err = tm.OpenSession(ctx, j.Resume, o)
	} else {
		t.session, err = tm.NewSession(o)
	}
	if err != nil {
		return nil, located(t.x.file, journals.ReadError(ctx, err))
	}
	return t, nil
}

// LaunchTurns begins a session with who answers in the chat of the spec or, if the launch resumes a run, continues the
// session of that run, as a client of a server asks for it.
func LaunchTurns(ctx context.Context, con *console.Console, l Launch) (*Turns, error) {
	j, err := l.job()
	if err != nil {
		return nil, err
	}
	return OpenTurns(ctx, silent(con), l.gives, &TurnJob{Job: *j, Resume: l.Resume})
}

// restore reads the last turn of the session that is resumed, and sets the flags that it had.
func (t *Turns) restore(ctx context.Context, given func(flag string) bool, con *console.Console, j *TurnJob) error {
	opened, err := j.open(con, journals.ToChange)
	if err != nil {
		return err
	}
	t.journal = opened
	turns, err := opened.journal.LoadSession(ctx, j.Resume)
	if errors.Is(err, journal.ErrNoSession) && j.Newest {
		return exit.Usagef("%w; without --continue, runteam chat begins one", err)
	}
	if errors.Is(err, journal.ErrNoSession) {
		return exit.Usagef("%w; runteam runs lists the turns of sessions", err)
	}
	if err != nil {
		return journals.ReadError(ctx, err)
	}
	last := &turns[len(turns)-1]
	if last.Busy != nil {
		return journals.ReadError(ctx, last.Busy)
	}
	asked := j.Agent
	again := &resumed{openJournal: opened}
	if err := again.load(ctx, &j.Job, last.Run); err != nil {
		return err
	}
	if err := j.Job.restore(ctx, given, con, again); err != nil {
		return err
	}
	j.Resume, j.resumed, j.Turn = last.Run, nil, nil
	if j.Command = "chat"; asked != "" {
		j.Agent = asked // a different one is an error
	}
	t.again = again
	return nil
}

// connect connects the agents and the tools of the spec, and builds the team.
func (t *Turns) connect(ctx context.Context, j *TurnJob) (tm *engine.Team, err error) {
	x := t.x
	if x.connector, err = connect.NewConnector(ctx, x.con, &j.AnswerFlags, x.file, nil); err != nil {
		return nil, err
	}
	if x.openAsker(); x.asker != nil {
		x.asker.ReadLine = j.ReadLine
	} else {
		x.connector.Ask = func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
			return agent.Reply{}, awaitAnswer(ctx, x, tm)
		}
	}
	x.connector.AllowNoKey = t.again != nil
	x.file.Config.Logger = x.con.Log
	if err := x.connectTools(ctx); err != nil {
		return nil, err
	}
	if tm, err = connect.BuildTeam(x.file, x.connector.Connect); err != nil {
		return nil, err
	}
	x.con.Warn(append(source.Warnings(x.file, nil), x.connector.UnusedReplies...))
	return tm, nil
}

// Session returns the session.
func (t *Turns) Session() *engine.Session { return t.session }

// Journal returns the journal that the turns are stored in; nil without one.
func (t *Turns) Journal() *journal.Journal { return t.journal.journal }

// ResumeCommand returns the command that continues the session.
func (t *Turns) ResumeCommand() string {
	return t.x.job.Journal.ChatCommand(t.ShortID(t.session.ID()))
}

// ShortID returns the beginning of the ID of a run if it is unique in the journal, else the whole ID.
func (t *Turns) ShortID(run string) string {
	if t.journal.journal == nil {
		return run
	}
	return (&JournalWriter{openJournal: t.journal}).shortID(run)
}

// Send has a text answered.
func (t *Turns) Send(ctx context.Context, text string, level label.Classification, v View) (*engine.Result, error) {
	o := t.session.Next(text, level, new(t.options(v)))
	file := *t.x.file
	file.Run = o
	source.SetTurn(&file)
	if t.journal.journal != nil {
		info, err := t.x.job.infoOf(t.x.con, &file)
		if err != nil {
			return nil, err
		}
		o.Journal = &JournalWriter{openJournal: t.journal, Info: info}
		if level > label.Confidential && !t.journal.hasKey && !t.x.warned {
			t.x.warned = true
			warnNoKey(t.x.con)
		}
	}
	defer t.attend(&o, o.RunID, v)()
	res, err := t.session.Send(ctx, text, level, &o)
	if err = aboutLabel(err, level); err != nil {
		return t.end(nil, err)
	}
	return t.end(res, nil)
}

// aboutLabel returns the error of a turn. If the agent is not cleared for the label of the text, the
// error says so in the words of a chat: the person wrote no task that could be changed.
func aboutLabel(err error, level label.Classification) error {
	list, _ := errors.AsType[task.Problems](err)
	for _, p := range list {
		refused, ok := errors.AsType[*gate.Refusal](p.Err)
		if !ok || p.Pointer != "/tasks/0/classification" && p.Pointer != "/goal" {
			continue
		}
		reason, its := strings.CutPrefix(refused.Reason, fmt.Sprintf("the context is %v, and ", level))
		if !its { // something else that the coordinator gets is above its clearance
			continue
		}
		_, accept, _ := strings.Cut(refused.Hint, ", or ")
		return exit.Usagef("what you write is %v, and %s; set a lower label with /label or --label, or %s", level, reason, accept)
	}
	return err
}

// Resume continues the last turn, which did not end.
func (t *Turns) Resume(ctx context.Context, v View) (*engine.Result, error) {
	_, run, unfinished := t.session.Unfinished()
	if !unfinished {
		return nil, engine.ErrNoTurn
	}
	o := t.options(v)
	file := *t.x.file
	file.Run = o
	file.Run.RunID, file.Run.Turn = run, t.again.stored.Info.Turn
	source.SetTurn(&file)
	j := *t.x.job
	j.resumed = t.again
	w, err := NewJournalWriter(ctx, t.x.con, &j, &file)
	if err != nil {
		return nil, err
	}
	o.Journal = w
	defer t.attend(&o, run, v)()
	return t.end(t.session.Resume(ctx, &o))
}

// attend has an attendant accompany the turn that is a run, until the returned function is called.
func (t *Turns) attend(o *engine.RunOptions, run string, v View) (ended func()) {
	if v.Attend == nil {
		return func() {}
	}
	a := v.Attend(run)
	t.x.attendant, o.Monitor, o.Stream = a, a.Monitor, a.Stream
	return func() {
		t.x.attendant = nil
		a.Ended()
	}
}

// options returns the options of a turn.
func (t *Turns) options(v View) engine.RunOptions {
	o := t.x.job.Options(t.x.file)
	o.Recorder = t.x.asker.Recorder(nil)
	o.Stream = v.Stream
	if v.Events != nil {
		o.Subscribers = append(o.Subscribers, v.Events)
	}
	return o
}

// end records how a turn ended.
func (t *Turns) end(res *engine.Result, err error) (*engine.Result, error) {
	if err != nil {
		return nil, located(t.x.file, err)
	}
	res.Command, t.Last = "chat", res
	return res, nil
}

// Problem says why the last turn was not answered and what to do; empty if it was.
func (t *Turns) Problem() string {
	res := t.Last
	if res.Success() && res.JournalErr == nil {
		return ""
	}
	text := (&report.Ending{Result: res, Mode: "none", Spec: t.x.file.Path, Scripted: t.x.job.Offline}).Text()
	if err := res.JournalErr; err != nil {
		text += fmt.Sprintf("runteam: the journal does not have the end of the turn: %v\n", err)
	}
	if res.Status == engine.StatusSuspended && t.journal.journal != nil {
		text += "runteam: the turn waits for a person: " + t.x.job.Journal.Command("questions") + ", then " + t.ResumeCommand() + "\n"
	}
	return text
}

// Close ends the tools and connections of the session, and closes the journal.
func (t *Turns) Close() {
	x := t.x
	x.asker.Close()
	if x.file != nil {
		_ = x.file.Tools.Close() // the turns have ended
	}
	if x.connector != nil {
		x.connector.Close()
	}
	if t.journal.journal != nil {
		_ = t.journal.close() // the turns have reported failures of the journal
	}
}
