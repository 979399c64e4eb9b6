package flowtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/task"
)

// Run runs the team and fails the test for every canary that is where it must not be and
// for every broken assertion. A test that tests nothing must not pass, so Run also fails for a
// canary in something that no edge of the spec delivers, for one that reached no reader and
// has no assertion, for one that no agent wrote, and if a task failed. One assertion is enough
// for a canary that was granted to readers and that a rule, a need or a label withheld from
// all of them.
//
// The flow of the plan decides where a canary may be. A prompt may have it if an edge
// delivers its path to that task, or if agents repeated it along a path of such edges. What
// the user reads and the record of the run may have it up to the user's clearance. Logs,
// events and the printed forms of values never may.
func (f *Flow) Run(t testing.TB) {
	t.Helper()
	if len(f.misuses) > 0 {
		t.Fatalf("flowtest: the test cannot be run:\n- %s", strings.Join(f.misuses, "\n- "))
	}
	f.logs.Reset()
	r := &run{Flow: f, context: t.Context()}
	if err := r.perform(); err != nil {
		t.Fatalf("flowtest: %v", f.file.Locate(err))
	}
	for _, problem := range r.check() {
		t.Errorf("flowtest: %s", problem)
	}
	t.Logf("flowtest: %d canaries in %d prompts of %d tasks", len(r.canaries), len(r.team.prompts), len(r.result.Tasks))
}

// A run is one run of a flow, and its results.
type run struct {
	*Flow
	context    context.Context
	trace      buffer
	team       *testTeam
	flow       *planFlow
	result     *engine.Result
	events     feed
	allowances map[*canary]*allowance
}

// perform plans and runs, and collects everything that was written.
func (r *run) perform() error {
	plan, err := r.plan()
	if err != nil {
		return err
	}
	r.flow = newPlanFlow(plan)
	if r.everywhere {
		if err := r.plantResults(); err != nil {
			return err
		}
	}
	if err := r.locate(); err != nil {
		return err
	}
	tm, err := r.build()
	if err != nil {
		return err
	}
	r.team.flow, r.team.decisions = r.flow, decisionsOf(plan)
	w := trace.NewWriter(&r.trace, trace.Options{Name: r.file.Name, Time: time.Now()})
	o := r.options()
	o.Recorder = w.Record
	o.Subscribers = []func(event.Event){w.Event, r.events.add}
	if r.file.Goal != nil {
		r.result, err = tm.RunTeam(r.context, *r.file.Goal, &o)
	} else {
		r.result, err = tm.RunTasks(r.context, r.file.Tasks, &o)
	}
	if err != nil {
		return err
	}
	if _, err := w.Close(r.result, time.Now()); err != nil {
		return fmt.Errorf("the trace: %w", err)
	}
	r.logValues()
	return nil
}

// options returns the options of the spec, without randomness: agents see the same in every
// run of a test.
func (r *run) options() engine.RunOptions {
	o := r.file.Run
	o.RunID = "flowtest"
	o.Random = func() float64 { return 0 }
	return o
}

// build makes the team with new agents.
func (r *run) build() (*engine.Team, error) {
	base, _ := os.LookupEnv("OPENAI_BASE_URL")
	var err error
	if r.team, err = newTestTeam(r.Flow, base); err != nil {
		return nil, err
	}
	r.file.Config.Logger = r.logger
	r.team.observeTools()
	return r.file.Build(r.team.connect)
}

// plan returns the plan of the run. That of a goal comes from the coordinator.
func (r *run) plan() (*engine.Plan, error) {
	tm, err := r.build()
	if err != nil {
		return nil, err
	}
	o := r.options()
	if r.file.Goal != nil {
		return tm.PlanTeam(r.context, *r.file.Goal, &o)
	}
	if len(r.file.Tasks) == 0 {
		return nil, errors.New("the spec has neither tasks nor a goal; add one")
	}
	return tm.Plan(r.file.Tasks, &o)
}

// locate finds the task and the schema of each canary.
func (r *run) locate() error {
	var found []error
	r.allowances = map[*canary]*allowance{}
	for _, x := range r.canaries {
		if x.isOfTask() {
			var known bool
			if x.row, known = r.flow.find(x.task); !known {
				found = append(found, r.flow.tasks().Unknown(x.task))
				continue
			}
			if t := &r.flow.plan.Tasks[x.row]; x.handoff && r.flow.source(x) < 0 {
				found = append(found, fmt.Errorf("%v: %q sends no handoffs; add an edge from it to an agent that has a task", x, t.Assignee))
				continue
			} else if t.Loop {
				found = append(found, fmt.Errorf("%v: a loop writes nothing itself; plant the canary in the result of the task that is its output", x))
				continue
			}
			if err := x.fit(r.schema(x.row)); err != nil {
				found = append(found, fmt.Errorf("%v: %w", x, err))
				continue
			}
		}
		r.allowances[x] = r.flow.allow(x)
	}
	for _, p := range r.assertions {
		if p.reader != Everybody && r.flow.reader(p.reader) < 0 {
			found = append(found, fmt.Errorf("an assertion about %v: unknown reader %q: %s", p.canary, p.reader, naming.Suggest(p.reader, r.flow.names())))
		}
	}
	return errors.Join(found...)
}

// fit checks the path of a canary against the schema of its result.
func (x *canary) fit(schema string) error {
	if x.path == "" {
		return nil
	}
	root, err := decodeSchema(schema)
	if err == nil {
		_, x.steps, err = requireText(root, x.keys, x.word)
	}
	return err
}

// schema returns the schema of a task's result.
func (r *run) schema(row int) string {
	t := r.flow.specs[row]
	if t.OutputSchema != nil {
		return string(t.OutputSchema)
	}
	i := slices.IndexFunc(r.file.Agents, func(a specfile.Agent) bool { return a.Member.Name == t.Assignee })
	if i < 0 {
		return ""
	}
	return string(r.file.Agents[i].Member.OutputSchema)
}

// A place is something that was written or sent.
type place struct {
	kind   kind
	name   string // for people
	reader string // of a tool input
	task   int    // of the graph, for a prompt and a result
	id     task.ID
	lower  string // the text, in lower case
}

// A kind says which rule applies to a place.
type kind int

const (
	aPrompt    kind = iota // what the plan delivers to the task
	aCall                  // what the task says to call its tools with
	aToolInput             // what a tool was called with, as the gate delivered it
	aResult                // what the user is shown of a task's result
	anAnswer               // what the user is shown of the run
	aRecord                // the trace: prompts and results, up to the user's clearance
	aFile                  // written by an agent under test
	aLog                   // never
	aName                  // of an instance, by the key of its item
)

// places lists everything that was written or sent.
func (r *run) places() (out []place) {
	add := func(k kind, at int, text, format string, args ...any) {
		out = append(out, place{kind: k, task: at, name: fmt.Sprintf(format, args...), lower: strings.ToLower(text)})
	}
	for _, s := range r.team.prompts {
		at := r.flow.taskOf(s)
		title := string(s.task)
		if i, ok := r.flow.plan.Graph.Index(s.task); ok {
			title = r.flow.plan.Graph.Task(i).Title
		} else if at >= 0 {
			title = r.flow.g.Tasks[at].Title
		}
		add(aPrompt, at, s.text, "the prompt of %q (%s)", title, s.agent)
		out[len(out)-1].id = s.task
		add(aCall, at, s.said, "the tool calls of %q (%s)", title, s.agent)
	}
	for i := range r.result.Tasks {
		t := &r.result.Tasks[i]
		at := r.flow.row(t.ID)
		text := fmt.Sprintf("%s\n%s\n%v", t.Result, t.Structured, t.OutputFiles)
		if t.Error != nil {
			text += "\n" + t.Error.Message
		}
		add(aResult, at, text, "the result of %q that the user is shown", t.Title)
	}
	add(anAnswer, -1, r.result.Output, "the answer that the user is shown")
	document, _ := json.Marshal(r.result)
	add(anAnswer, -1, string(document), "the result as JSON")
	names := map[string]bool{}
	for _, e := range r.events.all() {
		if names[e.Name] = true; e.Name != "" {
			add(aName, -1, e.Name, "the name of %s in event %d", e.Title, e.Seq)
		}
		if e.Name = ""; names[e.Because] {
			e.Because = ""
		}
		text, _ := json.Marshal(e)
		add(aLog, -1, string(text), "event %d (%s)", e.Seq, cmp.Or(e.Title, string(e.Type)))
	}
	add(aLog, -1, r.logs.String(), "the log")
	add(aRecord, -1, r.trace.String(), "the trace")
	r.files(add)
	return r.toolPlaces(out)
}

// files adds the files that agents under test wrote, with their names.
func (r *run) files(add func(k kind, at int, text, format string, args ...any)) {
	_ = filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			text, _ := os.ReadFile(path)
			add(aFile, -1, path+"\n"+string(text), "the file %s", filepath.Base(path))
		}
		return nil
	})
}

// logValues logs values that contain payloads and must not show them, as a program could do
// by mistake.
func (r *run) logValues() {
	shown := []any{r.flow.plan}
	for _, in := range r.file.Run.Inputs {
		shown = append(shown, in)
	}
	for i := range r.result.Tasks {
		t := &r.result.Tasks[i]
		if t.Error != nil {
			r.logger.Debug("failed", "err", t.Error) // its text is for the user
		}
		shown = append(shown, t.Envelope)
		for _, receipt := range t.Receipts {
			shown = append(shown, receipt)
		}
	}
	for _, v := range shown {
		text, _ := json.Marshal(v)
		r.logger.Debug("printed", "value", v, "text", fmt.Sprintf("%v %+v %#v", v, v, v), "json", string(text))
	}
}
