package teammemory_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/teammemory"
)

// methods lists the method set of a type, by name.
func methods(of reflect.Type) map[string]reflect.Type {
	set := map[string]reflect.Type{}
	for m := range of.Methods() {
		set[m.Name] = m.Type
	}
	return set
}

func names(set map[string]reflect.Type) []string {
	var list []string
	for name := range set {
		list = append(list, name)
	}
	return list
}

func TestWriterCannotRead(t *testing.T) {
	t.Parallel()
	writer, reader := reflect.TypeFor[teammemory.Writer](), reflect.TypeFor[teammemory.Reader]()
	fault := reflect.TypeFor[error]()
	for _, w := range []reflect.Type{writer, reflect.PointerTo(writer)} {
		set := methods(w)
		require.ElementsMatch(t, []string{"Write", "WriteResult"}, names(set), "a new method must not read")
		for name, m := range set {
			require.Equal(t, 1, m.NumOut(), name)
			require.Equal(t, fault, m.Out(0), "%s tells nothing but whether it failed", name)
		}
		for _, r := range []reflect.Type{reader, reflect.PointerTo(reader), reflect.TypeFor[*teammemory.Memory](), reflect.TypeFor[teammemory.Store]()} {
			require.False(t, w.ConvertibleTo(r), "%v(%v) compiles", r, w)
		}
	}
	for _, handle := range []reflect.Type{writer, reader} {
		for field := range handle.Fields() {
			require.False(t, field.IsExported(), "%v.%s leads behind the handle", handle, field.Name)
			require.False(t, field.Anonymous, "%v.%s promotes methods", handle, field.Name)
		}
	}
}

func TestReaderCannotWrite(t *testing.T) {
	t.Parallel()
	writer, reader := reflect.TypeFor[teammemory.Writer](), reflect.TypeFor[teammemory.Reader]()
	for _, r := range []reflect.Type{reader, reflect.PointerTo(reader)} {
		require.ElementsMatch(t, []string{"Entries", "Summary"}, names(methods(r)), "a new method must not write")
		for _, w := range []reflect.Type{writer, reflect.PointerTo(writer), reflect.TypeFor[*teammemory.Memory](), reflect.TypeFor[teammemory.Store]()} {
			require.False(t, r.ConvertibleTo(w), "%v(%v) compiles", w, r)
		}
	}
}

func TestEntriesAreTheCallers(t *testing.T) {
	t.Parallel()
	m := teammemory.New(nil)
	note(t, m, "ana", "a", "1", 0)
	note(t, m, "ana", "b", "2", 0)
	list, err := m.Reader().Entries(t.Context(), teammemory.Everything())
	require.NoError(t, err)
	list[0].Agent, list[0].Key, list[1].Envelope = "eve", "z", nil
	_ = append(list[:0], teammemory.Entry{})
	require.Equal(t, []string{"ana/a=1", "ana/b=2"}, lines(t, m, teammemory.Everything()))
}

func TestZeroHandlesRefuse(t *testing.T) {
	t.Parallel()
	var w teammemory.Writer
	var r teammemory.Reader
	e := said(t, "ana", "t1", envelope.Text("x"))
	require.ErrorIs(t, w.Write(t.Context(), "ana", "k", e, 0), teammemory.ErrNoMemory)
	require.ErrorIs(t, w.WriteResult(t.Context(), "ana", e, 0), teammemory.ErrNoMemory)
	list, err := r.Entries(t.Context(), teammemory.Everything())
	require.ErrorIs(t, err, teammemory.ErrNoMemory)
	require.Empty(t, list)
	digest, err := r.Summary(t.Context(), teammemory.Everything(), pass)
	require.ErrorIs(t, err, teammemory.ErrNoMemory)
	require.Empty(t, digest)
}
