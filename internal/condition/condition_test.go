package condition_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/condition"
)

// leaf returns a comparison of /x of the task A.
func leaf(t require.TestingT, op condition.Op, values ...any) condition.Condition {
	c, err := condition.Leaf(op, "A", "/x", values...)
	require.NoError(t, err)
	return *c
}

func of(op condition.Op, all ...condition.Condition) condition.Condition {
	return condition.Condition{Op: op, Of: all}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		c     condition.Condition
		value string
		want  bool
	}{
		{"equal text", leaf(t, condition.Equals, "a"), `"a"`, true},
		{"another text", leaf(t, condition.Equals, "a"), `"b"`, false},
		{"a number is no text", leaf(t, condition.Equals, "5"), `5`, false},
		{"equal numbers", leaf(t, condition.Equals, 5.0), `5`, true},
		{"null", leaf(t, condition.Equals, nil), `null`, true},
		{"no value is not null", leaf(t, condition.Equals, nil), ``, false},
		{"one of", leaf(t, condition.In, "a", 1), `1`, true},
		{"none of", leaf(t, condition.In, "a", 1), `2`, false},
		{"at least", leaf(t, condition.AtLeast, 0.1), `0.1`, true},
		{"less", leaf(t, condition.AtLeast, 0.1), `0.0999`, false},
		{"at most", leaf(t, condition.AtMost, -1), `-1.5`, true},
		{"a large integer", leaf(t, condition.AtLeast, 1), `"9007199254740993"`, true},
		{"a text is no number", leaf(t, condition.AtLeast, 1), `"abc"`, false},
		{"a text of digits is no number", leaf(t, condition.AtLeast, 1), `"5"`, false},
		{"true is no number", leaf(t, condition.AtMost, 1), `true`, false},
		{"exists", leaf(t, condition.Exists), `null`, true},
		{"does not exist", leaf(t, condition.Exists), ``, false},
		{"all", of(condition.All, leaf(t, condition.AtLeast, 1), leaf(t, condition.AtMost, 3)), `2`, true},
		{"not all", of(condition.All, leaf(t, condition.AtLeast, 1), leaf(t, condition.AtMost, 3)), `4`, false},
		{"any", of(condition.Any, leaf(t, condition.AtMost, 1), leaf(t, condition.AtLeast, 3)), `3`, true},
		{"not any", of(condition.Any, leaf(t, condition.AtMost, 1), leaf(t, condition.AtLeast, 3)), `2`, false},
		{"not", of(condition.Not, leaf(t, condition.Equals, "a")), ``, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, tt.c.Holds(func(*condition.Condition) string { return tt.value }))
		})
	}
}

func TestString(t *testing.T) {
	t.Parallel()
	a, b, many := leaf(t, condition.Equals, "a"), leaf(t, condition.Equals, 2), leaf(t, condition.In, "a", nil)
	other := a
	other.Path = "/y"
	for want, c := range map[string]condition.Condition{
		`/x of "A" is "a"`:                                        a,
		`/x of "A" is "a" or null`:                                many,
		`/x of "A" is at least 2`:                                 leaf(t, condition.AtLeast, 2),
		`/x of "A" is at most 2`:                                  leaf(t, condition.AtMost, 2),
		`/x of "A" exists`:                                        leaf(t, condition.Exists),
		`/x of "A" is "a" and /x of "A" is 2`:                     of(condition.All, a, b),
		`(/x of "A" is "a" or /x of "A" is 2) and /x of "A" is 2`: of(condition.All, of(condition.Any, a, b), b),
		`/x of "A" is not "a"`:                                    of(condition.Not, a),
		`/x of "A" is not "a" or null or 2`:                       of(condition.Not, of(condition.Any, many, b)),
		`not (/x of "A" is "a" or /y of "A" is "a")`:              of(condition.Not, of(condition.Any, a, other)),
		`not /x of "A" exists`:                                    of(condition.Not, leaf(t, condition.Exists)),
		`not (/x of "A" is "a" and /x of "A" is 2)`:               of(condition.Not, of(condition.All, a, b)),
		`else`: {Op: condition.Else},
	} {
		require.Equal(t, want, c.String())
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	bad := leaf(t, condition.Equals, []any{})
	anywhere := leaf(t, condition.Exists)
	anywhere.Path = "/*/x"
	for _, tt := range []struct {
		c    condition.Condition
		path []any
		err  string
	}{
		{leaf(t, condition.Equals, 1, 2), []any{"equals"}, "equals has 2 values"},
		{leaf(t, condition.In), []any{"in"}, "in has no values: write those of the case"},
		{leaf(t, condition.AtLeast, "5"), []any{"gte"}, `gte compares numbers, and "5" is none`},
		{leaf(t, condition.Exists, 1), []any{"exists"}, "exists has 1 values"},
		{bad, []any{"equals"}, "equals compares texts, numbers, true, false and null"},
		{anywhere, []any{"path"}, "write the path of one value, such as /team"},
		{of(condition.Not, of(condition.All, leaf(t, condition.Exists), bad)), []any{"not", 0, "all", 1, "equals"}, "equals compares texts, numbers, true, false and null"},
		{of(condition.Any), nil, "any has no conditions"},
		{of(condition.Not), nil, "not has 0 conditions: write one"},
		{of(condition.Not, condition.Condition{Op: condition.Else}), []any{"not", 0}, "else is the whole condition of a task"},
		{condition.Condition{}, nil, `unknown operator ""`},
	} {
		path, err := tt.c.Check()
		require.EqualError(t, err, tt.err)
		require.Equal(t, tt.path, path)
	}
}

// draw draws a condition on /x of the task A, with whole numbers from 0 to 9, true and texts.
func draw(t *rapid.T, depth int) condition.Condition {
	some := func() (all []condition.Condition) {
		for range rapid.IntRange(1, 3).Draw(t, "conditions") {
			all = append(all, draw(t, depth+1))
		}
		return all
	}
	number := func() float64 { return float64(rapid.IntRange(0, 36).Draw(t, "number")) / 4 }
	value := func() any {
		return rapid.SampledFrom([]any{number(), true, nil, "a", "b", "5"}).Draw(t, "value")
	}
	switch rapid.IntRange(min(depth, 2)*2, 8).Draw(t, "kind") {
	case 0, 1:
		return of(condition.All, some()...)
	case 2:
		return of(condition.Any, some()...)
	case 3:
		return of(condition.Not, draw(t, depth+1))
	case 4:
		return leaf(t, condition.AtLeast, number())
	case 5:
		return leaf(t, condition.AtMost, number())
	case 6:
		return leaf(t, condition.Exists)
	case 7:
		return leaf(t, condition.In, value(), value())
	}
	return leaf(t, condition.Equals, value())
}

// TestCasesTellAllValuesApart compares the cases of a domain with every value of it: whichever
// value there is, conditions hold for it as for one of the cases.
func TestCasesTellAllValuesApart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var conditions []*condition.Condition
		for range rapid.IntRange(1, 3).Draw(t, "tasks") {
			conditions = append(conditions, new(draw(t, 0)))
		}
		d, all := condition.Domain{}, []string(nil)
		if rapid.Bool().Draw(t, "numbers") {
			low, high := 0.0, float64(rapid.IntRange(0, 9).Draw(t, "high"))
			d.Numbers, d.Integer, d.Min, d.Max = true, rapid.Bool().Draw(t, "whole"), &low, &high
			for i := range 4*int(high) + 1 {
				if !d.Integer || i%4 == 0 {
					all = append(all, strconv.FormatFloat(float64(i)/4, 'g', -1, 64))
				}
			}
		}
		if d.Texts = rapid.Bool().Draw(t, "texts"); d.Texts {
			all = append(all, `"a"`, `"b"`, `"5"`, `"some other text"`)
		}
		if rapid.Bool().Draw(t, "values") {
			d.Values = []string{"null", "true", "false"}
			all = append(all, d.Values...)
		}
		if d.Absent = rapid.Bool().Draw(t, "absent"); d.Absent {
			all = append(all, "")
		}
		seen := map[string]bool{}
		for _, one := range d.Cases(conditions) {
			seen[pattern(conditions, one.Meets)] = true
			require.NotEmpty(t, one.Name)
		}
		for _, value := range all {
			meets := func(c *condition.Condition) bool { return c.Holds(func(*condition.Condition) string { return value }) }
			require.True(t, seen[pattern(conditions, meets)], "%s is like no case", value)
		}
	})
}

// pattern says which conditions hold.
func pattern(conditions []*condition.Condition, meets func(*condition.Condition) bool) string {
	var text strings.Builder
	for _, c := range conditions {
		text.WriteString(strconv.FormatBool(meets(c)) + " ")
	}
	return text.String()
}

func TestJSONOfAnyConditionIsTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := draw(t, 0)
		require.NoError(t, func() error { _, err := want.Check(); return err }())
		data, err := json.Marshal(want)
		require.NoError(t, err)
		var got condition.Condition
		require.NoError(t, json.Unmarshal(data, &got))
		require.Equal(t, want, got)
		require.Equal(t, want, *want.Clone())
	})
	for _, text := range []string{`5`, `"other"`, `{}`, `{"task":"A"}`, `{"bogus":1}`, `{"task":"A","path":"/x","in":5}`} {
		require.Error(t, json.Unmarshal([]byte(text), new(condition.Condition)), text)
	}
	var c condition.Condition
	require.NoError(t, json.Unmarshal([]byte(`{"task":"A","path":"/x","gte":1,"lte":3,"exists":false}`), &c))
	require.Equal(t, `/x of "A" is at least 1 and /x of "A" is at most 3 and not /x of "A" exists`, (&c).String())
}

// Between 1.3 and 2.9 there is a whole number, and neither the middle of them nor what is one beside
// them is whole.
func TestCasesOfWholeNumbersBetweenFractions(t *testing.T) {
	t.Parallel()
	d := condition.Domain{Numbers: true, Integer: true}
	var names []string
	for _, one := range d.Cases([]*condition.Condition{new(leaf(t, condition.AtMost, 1.3)), new(leaf(t, condition.AtLeast, 2.9))}) {
		names = append(names, one.Name)
	}
	require.Equal(t, []string{"1", "2", "3"}, names)
}
