package scripted_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/internal/slowtest"
)

// written returns the file of a script.
func written(t require.TestingT, s *scripted.Script) string {
	var b bytes.Buffer
	n, err := s.WriteTo(&b)
	require.NoError(t, err)
	require.Equal(t, int64(b.Len()), n)
	return b.String()
}

// reread parses a file and forgets where its replies stand.
func reread(t require.TestingT, file string) *scripted.Script {
	s, err := scripted.Parse("s.yaml", []byte(file))
	require.NoError(t, err, file)
	for i := range s.Replies {
		s.Replies[i].At = scripted.Place{}
		for j := range s.Replies[i].ToolCalls {
			s.Replies[i].ToolCalls[j].At = scripted.Place{}
		}
	}
	return s
}

func TestWriteTo(t *testing.T) {
	t.Parallel()
	s := &scripted.Script{Models: []string{"a"}, Replies: []scripted.Reply{
		{Task: "Extract facts", System: "adjuster", Text: "{\"sum\": 3}\n\n\tnew", Times: 2, Usage: &scripted.Usage{Input: 10, Output: 5}},
		{Coordinator: scripted.Digest, Part: 2, Text: "one line"},
		{Status: 429, RetryAfter: 2 * time.Second, Body: "<html>\nslow down\n</html>\n", Delay: 50 * time.Millisecond},
		{Text: "cut\r\nshort", Cut: true},
		{Task: "Look", Turn: 2, Text: "so", ToolCalls: []scripted.ToolCall{
			{Name: "search", Arguments: map[string]any{"q": "{{ .Task }}: \"a\"\n", "a: b": []any{json.Number("1.50"), true, nil, map[string]any{}}}}, {Name: "stop"},
		}},
		{},
	}}
	require.Equal(t, `models:
  - "a"
replies:
  - task: "Extract facts"
    system: "adjuster"
    times: 2
    usage: {input: 10, output: 5}
    text: |-
      {"sum": 3}

      	new
  - coordinator: digest
    part: 2
    text: "one line"
  - delay: 50ms
    status: 429
    retryAfter: 2s
    body: |
      <html>
      slow down
      </html>
  - cut: true
    text: "cut\u000d\nshort"
  - task: "Look"
    turn: 2
    text: "so"
    toolCalls:
      - name: "search"
        arguments: {"a: b": [1.50, true, null, {}], "q": "{{ .Task }}: \"a\"\n"}
      - name: "stop"
  - text: ""
`, written(t, s))
	require.Equal(t, s, reread(t, written(t, s)))
	require.Equal(t, "replies: []\n", written(t, nil))
	require.Empty(t, reread(t, "replies: []\n").Replies)
}

func TestWriteToRefusesInvalidScripts(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]*scripted.Script{
		"reply 2: status: want":    {Replies: []scripted.Reply{{}, {Status: 7}}},
		"reply 1: text: ":          {Replies: []scripted.Reply{{Text: "{{"}}},
		"reply 2: not UTF-8":       {Replies: []scripted.Reply{{}, {Text: "a\xffb"}}},
		"reply 1: not UTF-8":       {Replies: []scripted.Reply{{Body: "a\xff\nb"}}},
		"models: not UTF-8":        {Models: []string{"\xff"}},
		"usage: want numbers from": {Replies: []scripted.Reply{{Usage: &scripted.Usage{Input: -1}}}},
		"times, part and turn are": {Replies: []scripted.Reply{{Times: 1 << 40}}},
	} {
		var b bytes.Buffer
		_, err := s.WriteTo(&b)
		require.ErrorContains(t, err, want)
		require.Zero(t, b.Len(), "nothing is written")
	}
}

func TestWriteToNamesTheTooLargeReply(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	s := &scripted.Script{Replies: []scripted.Reply{{Body: strings.Repeat("x", scripted.MaxFile)}, {Text: "and one more"}}}
	var b bytes.Buffer
	_, err := s.WriteTo(&b)
	require.ErrorIs(t, err, scripted.ErrTooLarge)
	require.ErrorContains(t, err, "16385 KiB, at most 16384 KiB; it is complete")
	require.True(t, strings.HasSuffix(b.String(), "and one more\"\n"), "a long run is not lost")
	full := errors.New("disk full")
	_, err = s.WriteTo(failing{full})
	require.ErrorIs(t, err, full)
	require.NotErrorIs(t, err, scripted.ErrTooLarge)
}

// failing is a writer that refuses.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestScriptsSurviveARoundTrip(t *testing.T) {
	t.Parallel()
	template := rapid.Map(texts(), func(s string) string { return strings.ReplaceAll(s, "{{", "{ {") })
	template = template.Filter(func(s string) bool { return !strings.Contains(s, "{{") })
	small := rapid.IntRange(0, 1<<31-1)
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		kinds := []*rapid.Generator[any]{
			template.AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil),
			rapid.Map(rapid.SampledFrom([]string{"0", "-0", "1.50", "1e5", "-1.5E-3", "123456789012345678901"}), func(n string) any { return json.Number(n) }),
		}
		if depth > 0 {
			kinds = append(kinds, rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(l []any) any { return l }),
				rapid.Map(rapid.MapOfN(texts(), value(depth-1), 0, 3), func(o map[string]any) any { return o }))
		}
		return rapid.OneOf(kinds...)
	}
	calls := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) scripted.ToolCall {
		c := scripted.ToolCall{Name: "x" + texts().Draw(t, "name")}
		if o := rapid.MapOfN(texts(), value(2), 0, 3).Draw(t, "arguments"); len(o) > 0 {
			c.Arguments = o
		}
		return c
	}), 1, 3)
	duration := rapid.Map(rapid.Int64Range(0, 1<<62), func(n int64) time.Duration { return time.Duration(n) })
	reply := rapid.Custom(func(t *rapid.T) scripted.Reply {
		r := scripted.Reply{System: texts().Draw(t, "system"), Times: small.Draw(t, "times"), Delay: duration.Draw(t, "delay")}
		switch rapid.IntRange(0, 2).Draw(t, "who") {
		case 0:
			r.Task = texts().Draw(t, "task")
		case 1:
			r.Coordinator, r.Part = scripted.Digest, small.Draw(t, "part")
		case 2:
			r.Coordinator = rapid.SampledFrom([]scripted.Step{scripted.Plan, scripted.Repair, scripted.Synthesis, ""}).Draw(t, "step")
		}
		if rapid.IntRange(0, 7).Draw(t, "ends") == 0 {
			r.Ended = rapid.SampledFrom([]string{"timeout", "task timeout", "child timeout", "child 2 timeout", "child 16 timeout", "canceled", "interrupted"}).Draw(t, "ended")
			return r
		}
		if rapid.Bool().Draw(t, "raw") {
			r.Status, r.Body, r.RetryAfter = rapid.IntRange(400, 599).Draw(t, "status"), texts().Draw(t, "body"), duration.Draw(t, "after")
			return r
		}
		r.Text, r.Cut = template.Draw(t, "text"), rapid.Bool().Draw(t, "cut")
		if r.Turn = small.Draw(t, "turn"); r.Turn%2 == 0 {
			r.ToolCalls = calls.Draw(t, "calls")
		}
		if rapid.Bool().Draw(t, "used") {
			r.Usage = &scripted.Usage{Input: small.Draw(t, "input"), Output: small.Draw(t, "output")}
		}
		return r
	})
	rapid.Check(t, func(t *rapid.T) {
		s := &scripted.Script{Models: rapid.SliceOfN(texts(), 0, 2).Draw(t, "models"), Replies: rapid.SliceOfN(reply, 0, 4).Draw(t, "replies")}
		file := written(t, s)
		got := reread(t, file)
		require.Equal(t, len(s.Replies), len(got.Replies), file)
		for i := range s.Replies {
			require.Equal(t, s.Replies[i], got.Replies[i], file)
		}
		require.ElementsMatch(t, s.Models, got.Models)
		require.Equal(t, file, written(t, got), "equal scripts, equal bytes")
	})
}
