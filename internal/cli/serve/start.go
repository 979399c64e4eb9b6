package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/progress"
	"github.com/runteam/runteam/internal/cli/run"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/roles"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
)

// A servedSpec is a spec whose runs can be started.
type servedSpec struct {
	name string
	spec string // the name that its runs have
	path string
	*specfile.Declared
}

// declared reads the inputs and parameters of each spec. Missing values are no error.
func (s *serveFlags) declared(ctx context.Context, con *console.Console) (list []servedSpec, err error) {
	for _, path := range s.specs {
		if path == "-" {
			return nil, exit.Usagef("SPEC -: standard input can be read only once: name a file")
		}
		d, err := s.declare(ctx, con, path)
		if err != nil {
			return nil, err
		}
		d.File = nil // inputs may be large
		name := run.SpecName(d)
		if slices.ContainsFunc(list, func(of servedSpec) bool { return of.name == name }) {
			name = path
		}
		if slices.ContainsFunc(list, func(of servedSpec) bool { return of.name == name || of.path == path }) {
			return nil, exit.Usagef("SPEC %s: it is named twice; name each spec once", path)
		}
		list = append(list, servedSpec{name, run.SpecName(d), path, d})
	}
	return list, nil
}

// declare reads a spec that can be served.
func (s *serveFlags) declare(ctx context.Context, con *console.Console, path string) (*specfile.Declared, error) {
	spec := s.spec(path)
	spec.Results = s.Results(con)
	d, err := spec.Declare(ctx, con)
	if err != nil || s.maxCost == 0 {
		return d, err
	}
	if models := d.File.Unpriced(); len(models) > 0 {
		return nil, exit.Usagef("SPEC %s: --max-cost-per-day counts what its runs cost, and the model %q has no price: add it to prices", path, models[0])
	}
	return d, nil
}

// spec returns the flags of a spec that is served.
func (s *serveFlags) spec(path string) *source.SpecFlags {
	spec := s.settings
	spec.Path, spec.NoCalls, spec.CallsTools = path, s.Offline, true
	return &spec
}

// launch returns the settings of all runs that the command starts.
func (s *serveFlags) launch(accepts label.Classification) run.Launch {
	return run.Launch{Spec: s.settings, Answers: s.AnswerFlags, Limits: s.limits, Journal: s.Flags, Accepts: &accepts, Drain: s.drain}
}

// A starter starts runs of served specs.
type starter struct {
	*site
	flags *serveFlags
	specs []servedSpec
	queue *run.Queue // nil unless it takes submitted runs

	policies sync.Mutex // held while the policy of a spec is replaced

	mu      sync.Mutex // guards the rest
	ctx     context.Context
	stop    context.CancelCauseFunc // ends ctx
	all     *sync.WaitGroup         // of the runs and the goroutines of the server; nil until runs can be started
	started int                     // runs of clients that have not ended
	working int                     // these, and submitted runs that the server has taken
	idle    chan struct{}           // closed once the server is drained and no run works any more
}

// maxStarted is the number of started runs that may work at the same time.
const maxStarted = 16

// begin lets runs start, until ctx ends.
func (s *starter) begin(ctx context.Context, all *sync.WaitGroup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.stop = context.WithCancelCause(ctx)
	s.all, s.idle = all, make(chan struct{})
}

// A specDocument is a served spec, in JSON.
type specDocument struct {
	Name        string          `json:"name"`
	Path        string          `json:"path"`
	Description string          `json:"description,omitempty"`
	Inputs      []inputDocument `json:"inputs"`
	Params      []paramDocument `json:"params"`
	Goal        bool            `json:"goal"`             // a goal can be given
	Chat        string          `json:"chat,omitempty"`   // who answers in its chat; empty without one
	Policy      string          `json:"policy,omitempty"` // the file of its policy, if that is a file of its own
}

type inputDocument struct {
	Name           string               `json:"name"`
	Classification label.Classification `json:"classification"`
	HasDefault     bool                 `json:"hasDefault"`
}

type paramDocument struct {
	Name       string `json:"name"`
	HasDefault bool   `json:"hasDefault"`
}

// A launcher starts runs of served specs as a guest.
type launcher struct {
	*guest
	starts *starter
}

// errNoStart reports a guest who may see the runs of a spec, and not start one.
var errNoStart = &inspector.Error{Code: inspector.Forbidden, Message: "none of your roles allows this for the spec", Hint: "ask whoever runs the server for the role of an operator"}

// mayStart returns what the caller of a run of a served spec may see if the guest starts it. fits limits the grants that count.
func (s launcher) mayStart(name string, fits func(*roles.Grant) bool) (label.Classification, error) {
	of, err := s.starts.find(name)
	if err != nil {
		return 0, err
	}
	accepts, ok := s.may(roles.Operator, of.spec, fits)
	if !ok {
		return 0, errNoStart
	}
	return accepts, nil
}

// launchOf returns the settings of the runs of a spec that the guest starts.
func (s launcher) launchOf(spec string) (run.Launch, error) {
	accepts, ok := s.may(roles.Operator, spec, nil)
	if !ok {
		return run.Launch{}, errNoStart
	}
	l := s.starts.flags.launch(accepts)
	l.Starter = s.person
	return l, nil
}

// Specs returns the served specs of which the guest may start runs; see [inspector.Starter].
func (s launcher) Specs(context.Context) (any, error) {
	docs := []specDocument{}
	for _, of := range s.starts.specs {
		if _, ok := s.may(roles.Operator, of.spec, nil); !ok {
			continue
		}
		doc := specDocument{Name: of.name, Path: of.path, Description: of.Description, Inputs: []inputDocument{}, Params: []paramDocument{}, Goal: of.Goal}
		if c := of.Declared.Chat; c != nil {
			doc.Chat = cmp.Or(c.Agent, handoff.Coordinator)
		}
		if of.Policy != nil {
			doc.Policy = of.Policy.Path
		}
		for _, in := range of.Inputs {
			doc.Inputs = append(doc.Inputs, inputDocument(in))
		}
		for _, p := range of.Params {
			doc.Params = append(doc.Params, paramDocument(p))
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// Start starts a run, and returns its ID once it has begun; see [inspector.Starter].
func (s launcher) Start(ctx context.Context, given inspector.Start) (id string, err error) {
	l, err := s.launch(&given)
	if err != nil {
		return "", err
	}
	return s.starts.perform(ctx, l)
}

// Submit stores a run for a worker; see [inspector.Starter].
func (s launcher) Submit(ctx context.Context, given inspector.Start, q inspector.Queue) (id string, added bool, err error) {
	l, err := s.launch(&given)
	if err != nil {
		return "", false, err
	}
	l.Request = &journals.Request{By: q.By, Reason: given.Reason}
	id, added, err = l.Submit(ctx, s.con, s.whole, journal.Submission{By: q.By, Request: q.ID, Due: q.At, Priority: q.Priority, Most: s.starts.flags.maxQueued})
	if errors.Is(err, journal.ErrQueueFull) {
		err = &inspector.Error{Code: inspector.TooMany, Message: fmt.Sprintf("%d of your runs wait, which is as many as may", s.starts.flags.maxQueued), Hint: "submit more when some of them have begun"}
	}
	return id, added, problem(err)
}

// Estimate says what a run could call and cost; see [inspector.Starter].
func (s launcher) Estimate(ctx context.Context, given inspector.Start) (any, error) {
	l, err := s.launch(&given)
	if err != nil {
		return nil, err
	}
	of, err := s.starts.find(given.Spec)
	if err != nil {
		return nil, err
	}
	texts, missing := map[string]string{}, []string(nil)
	for _, in := range of.Inputs {
		text := l.Texts[in.Name]
		switch blank := strings.TrimSpace(text) == ""; {
		case !blank:
			texts[in.Name] = text
		case !in.HasDefault:
			texts[in.Name], missing = "-", append(missing, in.Name)
		}
	}
	l.Texts = texts
	e, err := l.Estimate(ctx, s.con, missing)
	if wrong, ok := errors.AsType[*inspector.Error](problem(err)); ok && wrong.Code == inspector.Invalid { // as long as the form is not complete
		return &run.Estimate{Models: []run.EstimatedModel{}, Missing: []string{}, Problem: wrong.Message}, nil
	}
	if err != nil {
		return nil, problem(err)
	}
	return e, nil
}

// Resume resumes a run of a served spec that no process works on, and returns once it has begun.
func (s launcher) Resume(ctx context.Context, id string) error {
	stored, err := s.steers.LoadStart(ctx, id)
	if err != nil {
		return problem(journals.ReadError(ctx, err))
	}
	if !s.starts.isServed(journals.InvocationOf(&stored.Info).Found) {
		return steerer{s.guest}.notRunning(ctx, id)
	}
	l := s.starts.flags.launch(s.accepts) // the run keeps its caller
	l.Resume, l.Attend = id, s.starts.attend
	_, err = s.starts.perform(ctx, l)
	return err
}

// isServed reports whether a path is that of a served spec.
func (s *starter) isServed(found string) bool {
	return slices.ContainsFunc(s.specs, func(of servedSpec) bool {
		path, err := s.con.WorkDir.Abs(of.Declared.Path)
		return err == nil && path == found
	})
}

// perform begins a run, and returns its ID once it has begun.
func (s *starter) perform(ctx context.Context, l run.Launch) (id string, err error) {
	if _, err := s.whole.Newest(ctx, "", 1); err != nil { // the run would be stored where nobody sees it
		return "", problem(journals.ReadError(ctx, err))
	}
	serving, err := s.take()
	if err != nil {
		return "", err
	}
	p, err := l.Prepare(ctx, s.con)
	if err != nil {
		s.release()
		return "", problem(err)
	}
	begun, ended := make(chan struct{}), make(chan error, 1)
	begin := sync.OnceFunc(func() { close(begun) })
	go func() {
		defer s.release()
		ended <- s.run(serving, p, begin)
	}()
	select {
	case <-begun:
		return p.ID(), nil
	case err := <-ended:
		if err != nil {
			return "", problem(err)
		}
		return p.ID(), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// take reserves a slot for a run of a client, and returns the context of runs. The caller calls release.
func (s *starter) take() (context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started >= maxStarted {
		return nil, &inspector.Error{Code: inspector.TooMany, Message: fmt.Sprintf("%d started runs are live", maxStarted), Hint: "wait until one has ended"}
	}
	ctx, err := s.enter()
	if err == nil {
		s.started++
	}
	return ctx, err
}

// release frees the slot of a run.
func (s *starter) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started--
	s.leave()
}

// enter has the server wait for a run before it ends, and returns the context of runs. The lock is held.
func (s *starter) enter() (context.Context, error) {
	if s.ctx == nil || s.ctx.Err() != nil || s.isDraining() {
		return nil, &inspector.Error{Code: inspector.Unavailable, Message: "the server is ending"}
	}
	s.working++
	s.all.Add(1)
	return s.ctx, nil
}

// leave ends what enter began. The lock is held.
func (s *starter) leave() {
	s.working--
	s.all.Done()
	if s.working == 0 && s.isDraining() {
		close(s.idle)
	}
}

// run performs a run, and reports on stderr why it could not. It calls begin once the journal has the
// run.
func (s *starter) run(ctx context.Context, p *run.Prepared, begin func()) error {
	_, err := p.Run(ctx, progress.Observer{Events: []func(event.Event){func(event.Event) { begin() }}})
	if err != nil && ctx.Err() == nil {
		s.con.Say("runteam: a run could not begin: %s", terminal.Clean(err.Error()))
	}
	return err
}

// launch returns the run for a request. The request has the texts of inputs; it cannot name files of this
// computer.
func (s launcher) launch(given *inspector.Start) (l run.Launch, err error) {
	if given.Spec == "" {
		return l, &inspector.Error{Code: inspector.Invalid, Message: "the request names no spec", Hint: "GET " + inspector.API + "/specs lists them", Problems: []inspector.Problem{{Pointer: "/spec", Message: "it is missing"}}}
	}
	of, err := s.starts.find(given.Spec)
	if err != nil {
		return l, err
	}
	if l, err = s.launchOf(of.spec); err != nil {
		return l, err
	}
	spec := s.starts.flags.spec(of.path)
	for _, name := range slices.Sorted(maps.Keys(given.Inputs)) {
		if !slices.ContainsFunc(of.Inputs, func(in specfile.DeclaredInput) bool { return in.Name == name }) {
			return l, unknownMember("inputs", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given.Params)) {
		if !slices.ContainsFunc(of.Params, func(p specfile.DeclaredParam) bool { return p.Name == name }) {
			return l, unknownMember("params", name)
		}
		spec.Params = append(spec.Params, name+"="+given.Params[name])
	}
	if given.Goal != nil && !of.Goal {
		return l, &inspector.Error{Code: inspector.Invalid, Message: fmt.Sprintf("the spec %q has tasks, and takes no goal", given.Spec), Problems: []inspector.Problem{{Pointer: "/goal", Message: "the tasks of the spec would not run"}}}
	}
	if given.Goal != nil {
		spec.Goal = source.GoalFlag{Text: *given.Goal, Given: true, Literal: true}
	}
	l.Spec, l.Texts = *spec, given.Inputs
	if given.Reason != "" {
		l.Request = &journals.Request{By: s.by, Reason: given.Reason}
	}
	l.Attend = s.starts.attend
	return l, nil
}

// attend returns the attendant of a run: its questions are answered in the page.
func (s *starter) attend(_ context.Context, id string, _ *journals.Flags) (*run.Attendant, error) {
	a := s.live.attend(id)
	a.Answers = true
	return a, nil
}

// unknownMember returns the error for an input or parameter that the spec does not declare.
func unknownMember(of, name string) error {
	return &inspector.Error{Code: inspector.Invalid, Message: fmt.Sprintf("the spec declares no %q under %s", name, of), Problems: []inspector.Problem{{
		Pointer: naming.Pointer(of, name), Message: "the spec does not declare it",
	}}}
}
