package specfile_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/tool"
)

func TestValuesOfVariablesAreConcealedInStructuredContent(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ value, said, want, err string }{
		"a text":           {"plain-value", `{"a":"plain-value"}`, `{"a":"${KEY}"}`, ""},
		"a quotation mark": {`half"value`, `{"a":"half\"value"}`, `{"a":"${KEY}"}`, ""},
		"an angle":         {`half<"value`, `{"a":"half\u003c\"value"}`, `{"a":"${KEY}"}`, ""},
		"a number":         {"481516", `{"a":481516}`, "", "the value of a variable is part of a number"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := &tool.Tool{Name: "s", Run: func(context.Context, tool.Call) (tool.Result, error) {
				return tool.Result{JSON: json.RawMessage(tt.said)}, nil
			}}
			res, err := specfile.Concealed(of, map[string]string{"KEY": tt.value}).Run(t.Context(), tool.Call{})
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, tt.want, string(res.JSON))
		})
	}
}
