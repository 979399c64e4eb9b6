package openai_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/llm"
)

// manyTools returns a request with n tools, each with another schema.
func manyTools(n int) llm.Request {
	schemas := make([]string, n)
	for i := range schemas {
		schemas[i] = fmt.Sprintf(`{"type":"object","properties":{"a%d":{"type":"string","pattern":"^x$"}}}`, i)
	}
	req := withTools(schemas...)
	for i := range req.Tools {
		req.Tools[i].Name = fmt.Sprintf("tool-%d-", i)
	}
	return req
}

// A tool that an endpoint refuses in every form without naming it is found and left out, and the others work.
func TestUnnamedToolIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, refusal := range []wordedRefusal{
		wording(400, "Invalid schema for a function"),
		wording(400, "Tool at index 1 is not valid"),
		wording(422, "tools: unsupported definition"),
		{400, `{"error":{"code":"1210","message":"API 调用参数有误，请检查文档。"}}`},
		{400, `{"error":{"message":"Request contains an invalid argument."}}`},
		{200, `{"error":{"message":"Invalid schema"}}`},
		{400, ``},
	} {
		for _, tt := range []struct {
			tools  int
			bad    []int
			probes int // at most
		}{{2, []int{0}, 4}, {3, []int{1}, 6}, {5, []int{4}, 6}, {64, []int{17}, 14}, {64, []int{3, 30, 61}, 30}} {
			t.Run(fmt.Sprint(refusal.body, tt.tools, tt.bad), func(t *testing.T) {
				t.Parallel()
				both(t, func(t *testing.T, stream bool) {
					req := manyTools(tt.tools)
					isBad := func(f sentFunction) bool {
						return slices.ContainsFunc(tt.bad, func(i int) bool { return req.Tools[i].Name == f.Name })
					}
					var sent bodies
					m := model(t, refusing(&sent, func(body string) (int, string) {
						if slices.ContainsFunc(functionsIn(t, body), isBad) {
							return refusal.status, refusal.body
						}
						return 0, ""
					}))
					for n := range 2 {
						res, err := m.Call(t.Context(), req, emitting(stream))
						require.NoError(t, err)
						require.Len(t, res.Warnings, len(tt.bad))
						for i, place := range tt.bad {
							require.Contains(t, strings.Join(res.Warnings, "\n"), "the endpoint refused "+req.Tools[place].Name+" in every form; the agent works without it", i)
						}
						all := sent.taken()
						last := functionsIn(t, all[len(all)-1])
						require.Equal(t, tt.tools-len(tt.bad), len(last))
						require.False(t, slices.ContainsFunc(last, isBad))
						require.True(t, hasKeyword(last[0].Parameters, "pattern"), "the others have their schemas")
						if n > 0 {
							require.Equal(t, 1, len(all), "it is remembered")
							continue
						}
						conversations := slices.DeleteFunc(slices.Clone(all), func(body string) bool { return !strings.Contains(body, "canary-of-the-prompt") })
						require.Equal(t, 4, len(conversations), "each form, and the last request")
						require.LessOrEqual(t, len(all)-len(conversations), tt.probes)
						if !stream {
							require.Equal(t, 7*(1+accepted(all, isBad, t)), res.Usage.InputTokens, "what the search took is counted")
						}
					}
				})
			})
		}
	}
}

// The tools that are left may need a simpler form, which is tried after the search.
func TestToolsBesideOneThatIsLeftOutAreSimplified(t *testing.T) {
	t.Parallel()
	var sent bodies
	m := model(t, refusing(&sent, func(body string) (int, string) {
		if slices.ContainsFunc(functionsIn(t, body), func(f sentFunction) bool { return f.Name == "tool-2-" || hasKeyword(f.Parameters, "pattern") }) {
			return 400, `{"error":{"message":"invalid schema"}}`
		}
		return 0, ""
	}))
	for range 2 {
		res, err := m.Call(t.Context(), manyTools(4), nil)
		require.NoError(t, err)
		require.Len(t, res.Warnings, 2)
		all := sent.taken()
		last := functionsIn(t, all[len(all)-1])
		require.Len(t, last, 3)
		require.True(t, hasKeyword(last[0].Parameters, "a0"), "the property is not only described")
	}
}

// accepted returns how many of the requests without the conversation have no bad tool.
func accepted(all []string, isBad func(sentFunction) bool, t *testing.T) (n int) {
	for _, body := range all {
		if !strings.Contains(body, "canary-of-the-prompt") && !slices.ContainsFunc(functionsIn(t, body), isBad) {
			n++
		}
	}
	return n
}

// A search for a refused tool ends without leaving any out if the tools are not the cause, if all of them are
// refused, or if the endpoint fails for another reason meanwhile.
func TestSearchForAToolLeavesNoneOutInVain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		refuses func(n int, body string, functions int) (status int, refusal string)
		calls   int
		error   string
	}{
		{"the conversation is the cause", func(_ int, body string, _ int) (int, string) {
			if strings.Contains(body, "canary-of-the-prompt") {
				return 400, `{"error":{"message":"bad request"}}`
			}
			return 0, ""
		}, 4, "bad request"},
		{"every request is refused", func(int, string, int) (int, string) { return 400, `{"error":{"message":"invalid schema"}}` }, 5, "invalid schema"},
		{"all tools are refused", func(_ int, _ string, functions int) (int, string) {
			if functions > 0 {
				return 400, `{"error":{"message":"invalid schema"}}`
			}
			return 0, ""
		}, 11, "invalid schema"},
		{"the endpoint fails", func(n int, _ string, functions int) (int, string) {
			switch {
			case n > 5:
				return 500, `{"error":{"message":"out of order"}}`
			case functions > 0:
				return 400, `{"error":{"message":"invalid schema"}}`
			}
			return 0, ""
		}, 6, "invalid schema"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var sent bodies
			n := 0
			m := model(t, refusing(&sent, func(body string) (int, string) {
				n++
				return tt.refuses(n, body, len(functionsIn(t, body)))
			}))
			_, err := m.Call(t.Context(), manyTools(4), nil)
			require.ErrorContains(t, err, tt.error)
			require.Equal(t, tt.calls, len(sent.taken()))
		})
	}
}
