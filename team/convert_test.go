package team

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every setting of a program reaches the engine: a field that is not converted would be
// ignored silently.
func TestEverySettingIsConverted(t *testing.T) {
	t.Parallel()
	config := Config{Agents: []Member{{}}, Coordinator: &Coordinator{}}
	fill(reflect.ValueOf(&config.Agents[0]).Elem())
	fill(reflect.ValueOf(config.Coordinator).Elem())
	config.Name, config.MaxContextBytes, config.MaxPromptBytes = "x", 1, 1
	inner := config.internal()
	requireSame(t, reflect.ValueOf(config.Agents[0]), reflect.ValueOf(inner.Agents[0]))
	requireSame(t, reflect.ValueOf(*config.Coordinator), reflect.ValueOf(*inner.Coordinator))
	require.Equal(t, []any{"x", 1, 1}, []any{inner.Name, inner.MaxContextBytes, inner.MaxPromptBytes})

	var options RunOptions
	fill(reflect.ValueOf(&options).Elem())
	options.Bus = nil // a zero bus is none
	options.Assert = []string{"input x never reaches user"}
	got := options.internal()
	require.Empty(t, got.Invalid)
	requireSame(t, reflect.ValueOf(options), reflect.ValueOf(*got))
}

// fill sets all fields that have simple values or lists of one element.
func fill(v reflect.Value) {
	for _, field := range v.Fields() {
		set(field)
	}
}

func set(v reflect.Value) {
	if !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		set(v.Index(0))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Struct:
		fill(v)
	}
}

// requireSame checks that what is set in the fields of a public struct is set in the fields
// of the same name of the internal one.
func requireSame(t *testing.T, public, inner reflect.Value) {
	t.Helper()
	for i := range public.NumField() {
		f := public.Type().Field(i)
		if f.Anonymous {
			requireSame(t, public.Field(i), inner)
			continue
		}
		if public.Field(i).IsZero() {
			continue // an interface or a function, which fill cannot make
		}
		to := inner.FieldByName(f.Name)
		require.True(t, to.IsValid(), "%s has no counterpart", f.Name)
		require.False(t, to.IsZero(), "%s is not converted", f.Name)
	}
}
