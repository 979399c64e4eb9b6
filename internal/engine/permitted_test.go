package engine

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
	"github.com/stretchr/testify/require"
)

// Whoever adds a field to a member or to a tool says here whether an approval covers it, or why not.
func TestAnApprovalCoversWhatAMemberMayDo(t *testing.T) {
	t.Parallel()
	const covered = ""
	run := func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }
	for _, tt := range []struct {
		of     any
		fields map[string]string // covered, or why not
		digest func(changed any) [32]byte
		set    map[string]any // a value for a field whose type has no simple one
	}{
		{plan.Member{}, map[string]string{
			"Name": "in the capabilities", "Accepts": "in the capabilities", "Produces": "in the capabilities", "OutputTags": "in the capabilities", "Backend": "its endpoints are in the capabilities",
			"Tools": covered, "AllowUntrusted": covered, "Receives": covered,
			"Agent": "who does it; whether it is confined is covered", "SystemPrompt": "what it is told", "OutputSchema": "the form of what it may write",
			"Conversation": "bounds how often, and children may do no more than their parent", "MaxSession": "bounds how long", "MaxParallel": "bounds how many", "Limits": "bounds how much", "Budget": "bounds how much",
			"Provider": "chooses agents, and the plan names them", "Description": "chooses agents, and the plan names them", "Capabilities": "chooses agents, and the plan names them", "Written": "where the file has it",
		}, func(v any) [32]byte { return permittedTo(new(v.(plan.Member)), &gate.Capabilities{}) }, map[string]any{"Tools": []*tool.Tool{{Name: "mail"}}, "Receives": plan.Receives{Intake: plan.Intake{BlockedContextFields: []task.Path{"notes"}}}}},
		{gate.Capabilities{}, map[string]string{
			"Agent": covered, "Accepts": covered, "Produces": covered, "OutputTags": covered, "Endpoints": covered, "MaxSession": "bounds how long", "Tools": "those of the member, which are covered",
		}, func(v any) [32]byte { return permittedTo(&plan.Member{}, new(v.(gate.Capabilities))) }, map[string]any{"Endpoints": []gate.Endpoint{{URL: "http://x"}}}},
		{gate.Endpoint{}, map[string]string{"URL": covered, "Accepts": covered}, func(v any) [32]byte {
			return permittedTo(&plan.Member{}, &gate.Capabilities{Endpoints: []gate.Endpoint{v.(gate.Endpoint)}})
		}, nil},
		{tool.Tool{}, map[string]string{
			"Name": covered, "Parameters": covered, "Foreign": covered, "ReadsWorkspace": covered, "Program": covered, "Options": "its fields are listed below", "Description": "what the agent is told of it", "Definition": "what its author says of it, for which approvals of calls are", "Run": "what is behind the name",
		}, func(v any) [32]byte { return callOf(new(v.(tool.Tool))) }, map[string]any{"Parameters": json.RawMessage("true"), "Program": &tool.Program{}, "Run": run}},
		{tool.Options{}, map[string]string{
			"Accepts": covered, "Produces": covered, "Effect": covered, "Repeatable": covered, "Stateful": covered, "State": covered, "Approve": covered, "Timeout": "bounds how long", "MaxOutput": "bounds how much", "Readable": covered,
		}, func(v any) [32]byte { return callOf(&tool.Tool{Options: v.(tool.Options)}) }, map[string]any{"Produces": new(label.Secret), "Readable": []string{"/opt"}}},
	} {
		of := reflect.TypeOf(tt.of)
		require.Equal(t, of.NumField(), len(tt.fields), "fields of %v", of)
		for i := range of.NumField() {
			name := of.Field(i).Name
			why, listed := tt.fields[name]
			require.True(t, listed, "%v.%s", of, name)
			if why != covered {
				continue
			}
			changed := reflect.New(of).Elem()
			if v, ok := tt.set[name]; ok {
				changed.Field(i).Set(reflect.ValueOf(v))
			} else {
				setSimple(changed.Field(i))
			}
			require.NotEqual(t, tt.digest(tt.of), tt.digest(changed.Interface()), "%v.%s", of, name)
		}
	}
}

// setSimple gives a field a value other than zero.
func setSimple(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("other")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	default:
		if v.CanInt() {
			v.SetInt(3)
		} else {
			v.SetUint(3)
		}
	}
}
