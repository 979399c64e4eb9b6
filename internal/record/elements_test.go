package record_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/record"
	"github.com/stretchr/testify/require"
)

func TestKeepElements(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, give, want string
		wantOK           bool
	}{
		{"objects", `{"a":[1],"list":[{"k":1},{"x":2},{"k":3}],"b":2}`, `{"a":[1],"list":[{"k":1},{"k":3}],"b":2}`, true},
		{"none is kept", `{"list":[{"x":2}]}`, `{"list":[]}`, true},
		{"empty", `{"list":[]}`, `{"list":[]}`, true},
		{"strings and numbers", `{"list":["k","x",7,true,"k]\"\\"]}`, `{"list":["k","k]\"\\"]}`, true},
		{"nested", `{"list":[["k",["x"]],{"x":[{}]},{"y":{"k":"}"}}]}`, `{"list":[["k",["x"]],{"y":{"k":"}"}}]}`, true},
		{"the name in a text", `{"text":"\"list\":[","list":[1]}`, `{"text":"\"list\":[","list":[]}`, true},
		{"the name deeper inside", `{"of":{"list":[1]}}`, `{"of":{"list":[1]}}`, false},
		{"no list", `{"list":1}`, `{"list":1}`, false},
		{"spaces", `{ "list": [1]}`, `{ "list": [1]}`, false},
		{"cut off", `{"list":[{"k":1},{"k`, `{"list":[{"k":1},{"k`, false},
		{"cut off in a text", `{"a":"\`, `{"a":"\`, false},
		{"nothing", ``, ``, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := record.KeepElements([]byte(tt.give), "list", func(element []byte) bool { return strings.Contains(string(element), "k") })
			require.Equal(t, tt.wantOK, ok)
			require.Equal(t, tt.want, string(got))
		})
	}
}

// With all elements, any object that has the list remains as it is.
func FuzzKeepElements(f *testing.F) {
	f.Add(`{"list":["k",{"a":[1,2]},"\\\""],"b":{}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var n int
		got, ok := record.KeepElements([]byte(text), "list", func([]byte) bool { n++; return true })
		var v struct{ List []json.RawMessage }
		if json.Unmarshal([]byte(text), &v) == nil {
			require.JSONEq(t, text, string(got))
		}
		if ok && json.Valid([]byte(text)) && !strings.Contains(strings.ToLower(strings.Replace(text, `"list":`, "", 1)), "list") {
			require.Len(t, v.List, n)
		}
	})
}
