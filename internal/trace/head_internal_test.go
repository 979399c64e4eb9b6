package trace

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// heads are first lines; those of the second half are not as a Writer writes them.
var heads = []string{
	`{"trace":{"version":1,"run":"r","tasks":[{"id":"1","title":"One","assignee":"ann","line":"a.yaml:1"},{"id":"2","key":"k","title":"Zwölf","name":"n","status":"completed","rounds":"x"}],"inputs":[{"name":"i","classification":"internal"}]}}`,
	`{"trace":{"version":1,"tasks":[{"id":"1","title":"a \"quoted\" one"}]}}`,
	`{"trace":{"version":1,"tasks":[]}}`,
	`{"trace":{"version":1}}`,
	`{"trace":{"version":1,"tasks":[{}]}}`,
	`{"trace":{"version":1,"tasks":[{"id":"1","other":"x"}]}}`,
	`{"trace":{"version":1,"tasks":[{"id":"1","id":"2"}]}}`,
	`{"trace":{"version":1,"tasks":[{"id":"1"]}}`,
	`{"trace":{"version":1,"tasks":[{"id":"1"},]}}`,
	`{"trace":{"version":1,"tasks":[{"id":"1"} , {"id":"2"}]}}`,
	`{"trace":{"version":1,"tasks":[{"id":7}]}}`,
	`{"trace":{"version":1,"tasks":[{"id":"1"}]},"event":{}}`,
	`{"trace":{"version":2,"tasks":[{"id":"1"}]}}`,
	`{"trace":{"tasks":[{"id":"1"}]}}`,
	`{"event":{"tasks":[{"id":"1"}]}}`,
}

// requireSameHead checks that a line is read as if its tasks were decoded as the rest of it.
func requireSameHead(t *testing.T, text string) {
	t.Helper()
	got, want := NewReader(ReadOptions{}), NewReader(ReadOptions{})
	got.at, want.at = 1, 1
	if !got.writtenHead([]byte(text)) {
		return
	}
	kind, value, members, err := want.split([]byte(text))
	require.NoError(t, err)
	require.Equal(t, "trace", kind)
	require.NoError(t, want.head(value, members))
	require.Equal(t, want.trace, got.trace)
}

func TestWrittenHeads(t *testing.T) {
	t.Parallel()
	read := 0
	for _, text := range heads {
		requireSameHead(t, text)
		if NewReader(ReadOptions{}).writtenHead([]byte(text)) {
			read++
		}
	}
	require.GreaterOrEqual(t, read, 5)
}

func FuzzWrittenHead(f *testing.F) {
	for _, text := range heads {
		f.Add(text)
	}
	f.Fuzz(requireSameHead)
}
