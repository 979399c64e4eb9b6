package agent

import (
	"reflect"

	"github.com/runteam/runteam/llm"
)

// Ready returns an error that wraps [llm.ErrNoModel] if the agent has no model to
// ask: it is nil or zero, or was made with a nil model.
func (a *LLM) Ready() error {
	if a == nil || a.model == nil {
		return llm.ErrNoModel
	}
	switch v := reflect.ValueOf(a.model); v.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice:
		if v.IsNil() {
			return llm.ErrNoModel
		}
	}
	return nil
}
