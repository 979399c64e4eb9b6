package runteam_test

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/promptview"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/messagebus"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/queue"
	"github.com/runteam/runteam/sharedmem"
	"github.com/runteam/runteam/synth"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// zeros has, by package, a pointer to the zero value of each exported type that
// has methods.
var zeros = map[string][]any{
	"assign":     {new(assign.Strategy)},
	"envelope":   {new(envelope.Envelope), new(envelope.Payload), new(jsonvalue.Value), new(envelope.Record)},
	"event":      {new(event.Handoff), new(event.Event), new(event.Context), new(event.Type)},
	"record":     {new(record.RunEnd), new(record.AgentCall), new(record.Monitor), new(record.Outcomes), new(record.Snapshot)},
	"flow":       {new(flow.Graph), new(flow.Table), new(flow.Edge), new(flow.Sight), new(flow.Lowering), new(flow.Source), new(flow.Assertion), new(flow.Path), new(flow.Step), new(flow.Subject), new(flow.Reach), new(flow.ReaderKind)},
	"gate":       {new(gate.Compartment), new(gate.Contract), new(gate.Rulebook), new(gate.Terms), new(gate.Sealed), new(gate.Capabilities), new(gate.Decision), new(gate.WithheldError), new(gate.Refusal), new(gate.Admission), new(gate.Ruling), new(gate.RevealProblem), new(gate.Verdict)},
	"handoff":    {new(handoff.WithheldError), new(handoff.Edge)},
	"label":      {new(label.Classification), new(label.Trust)},
	"messagebus": {new(messagebus.Bus), new(messagebus.Message)},
	"mailbox":    {new(mailbox.Bus), new(mailbox.Post), new(mailbox.Snapshot), new(mailbox.Draft), new(mailbox.Message), new(mailbox.Stored)},
	"prompt":     {new(prompt.Prompt), new(prompt.Receipt), new(prompt.Part)},
	"promptview": {new(promptview.Shown)},
	"queue":      {new(queue.Queue)},
	"sharedmem":  {new(sharedmem.Memory), new(sharedmem.Entry)},
	"teammemory": {new(teammemory.MapStore), new(teammemory.Memory), new(teammemory.Reader), new(teammemory.Writer)},
	"synth":      {new(synth.Rules)},
	"task":       {new(task.CycleError), new(task.Spec), new(task.Task), new(task.Ref), new(task.Requires), new(task.Problem), new(task.Problems), new(provenance.Position), new(task.MemoryScope), new(task.Payload), new(task.Priority), new(task.Status)},
	"engine":     {new(engine.BudgetError), new(engine.Result), new(engine.TaskError), new(engine.Team), new(engine.AgentFunc), new(engine.Outbox), new(engine.Goal), new(engine.Input), new(engine.Message)},
	"team":       {new(team.Plan), new(team.Result), new(team.RunError), new(team.TaskError), new(team.Team), new(team.Session), new(team.Outbox), new(team.Monitor), new(team.Goal), new(team.Input), new(team.Message), new(team.Config), new(team.RunOptions)},
}

// documented are the methods whose doc comment says that they panic, or that a
// nil or zero value has none of them.
var documented = map[string]string{
	"*team.Team.NewBus":       "runteam: the team is nil or zero",
	"*engine.Team.NewBus":     "runteam: the team is nil or zero",
	"*flow.Table.Graph":       "",
	"*flow.Table.Reach":       "",
	"*flow.Table.Row":         "",
	"*flow.Table.Wrote":       "",
	"*flow.Table.Via":         "",
	"*flow.Table.Check":       "",
	"*sharedmem.Entry.Record": "", // of an entry without an envelope
	"*gate.Ruling.Err":        "", // of the decision in it
}

// A method that can return an error returns one where its receiver is nil or
// zero and its arguments are, the context too, or does what it says; it does not
// crash. Without an error, a method of a zero value does not crash either, except
// that an index beyond a list panics as that of a slice does. A method without an
// error may panic on a nil pointer, as Go does.
func TestNilAndZeroValuesDoNotCrash(t *testing.T) {
	t.Parallel()
	for pkg, list := range zeros {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			for _, v := range list {
				zero := reflect.ValueOf(v)
				for _, at := range []reflect.Value{zero, reflect.Zero(zero.Type())} {
					for i := range at.NumMethod() {
						callZero(t, at, i)
					}
				}
			}
		})
	}
}

// callZero calls a method with zero arguments and judges a panic.
func callZero(t *testing.T, at reflect.Value, i int) {
	method, name := at.Method(i), fmt.Sprintf("%v.%s", at.Type(), at.Type().Method(i).Name)
	if _, written := at.Type().Elem().MethodByName(at.Type().Method(i).Name); written && at.IsNil() {
		return // of the value, which a nil pointer has not
	}
	if strings.HasSuffix(name, ".Format") {
		return // fmt alone calls it, with what fmt has
	}
	signature := method.Type()
	var args []reflect.Value
	for k := range signature.NumIn() {
		if signature.IsVariadic() && k == signature.NumIn()-1 {
			break
		}
		args = append(args, reflect.Zero(signature.In(k)))
	}
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		said := fmt.Sprint(p)
		if want, ok := documented[name]; ok && strings.Contains(said, want) {
			return
		}
		n := signature.NumOut()
		fails := n > 0 && signature.Out(n-1) == reflect.TypeFor[error]() || strings.HasPrefix(at.Type().Method(i).Name, "Unmarshal")
		if !fails && (at.IsNil() || strings.Contains(said, "index out of range")) {
			return
		}
		if strings.HasPrefix(at.Type().Method(i).Name, "Unmarshal") && at.IsNil() {
			return // nothing to read into
		}
		if e := strings.TrimPrefix(name, "*"); strings.HasPrefix(e, "envelope.Envelope.") && !strings.HasSuffix(e, "Fresh") && !strings.HasSuffix(e, "Genuine") {
			return // only New makes one, and it says so
		}
		t.Errorf("%s (nil: %v) panics: %v", name, at.IsNil(), p)
	}()
	method.Call(args)
}

// The table above has every exported type of its packages that has methods.
func TestEveryTypeWithMethodsIsCalledAsZero(t *testing.T) {
	t.Parallel()
	all := sources(t)
	for _, pkg := range slices.Sorted(maps.Keys(zeros)) {
		known := map[string]bool{}
		for _, v := range zeros[pkg] {
			known[reflect.TypeOf(v).Elem().Name()] = true
		}
		for _, file := range all[pkg] {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.IsExported() {
					of := f.Recv.List[0].Type
					if p, ok := of.(*ast.StarExpr); ok {
						of = p.X
					}
					name := of.(*ast.Ident).Name
					require.True(t, !ast.IsExported(name) || known[name], "%s.%s", path.Base(pkg), name)
				}
			}
		}
	}
}
