package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

const maxErrorText = 64 << 10 // bytes of an error text that are kept

// Whatever the agent is and whether there is a journal, a reply is at most so large.
func TestRepliesAreBounded(t *testing.T) {
	t.Parallel()
	half := strings.Repeat("x", gate.MaxReply/2)
	v, err := jsonvalue.Parse(`{"a":"` + half + `"}`)
	require.NoError(t, err)
	tests := []struct {
		name  string
		reply agent.Reply
		taken bool
	}{
		{"at the limit", agent.Reply{Text: half + half[2:]}, true}, // with its quotes
		{"one byte above", agent.Reply{Text: half + half[1:]}, false},
		{"as JSON writes it", agent.Reply{Text: strings.Repeat("\x01", gate.MaxReply/6+1)}, false},
		{"both parts together", agent.Reply{Text: half, JSON: v}, false},
		{"tags", agent.Reply{Text: "x", Tags: []string{half, half}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			schema := spec("schema")
			schema.OutputSchema = []byte(`{"type":["object","string"]}`)
			for _, s := range []task.Spec{spec("plain"), schema} {
				if tt.taken && s.OutputSchema != nil {
					continue // the text is no JSON
				}
				res := run(t, newTeam(t, member("a", func(context.Context, prompt.Prompt) (agent.Reply, error) { return tt.reply, nil })), nil, by("a", s))
				if tt.taken {
					require.Equal(t, len(tt.reply.Text), len(res.Tasks[0].Result))
					continue
				}
				require.Equal(t, codes.Reply, res.Tasks[0].Error.Code)
				require.Contains(t, res.Tasks[0].Error.Message, "larger than 4 MiB")
			}
		})
	}
}

// What an agent says of an error is cut where it enters: on a rune, with a
// mark, and never inside what redaction takes out.
func TestErrorTextsAreCut(t *testing.T) {
	t.Parallel()
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEAcanary0123456789abcdefghijklmnopqrstuvwxyzABCDEF\n", 20) + "-----END RSA PRIVATE KEY-----\n"
	open := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEAcanary0123456789abcdefghijklmnopqrstuvwxyzABCDEF\n", 20_000)
	for name, said := range map[string]string{
		"runes":             strings.Repeat("ä", 1<<20),
		"a key across":      strings.Repeat("é", (maxErrorText-200)/2) + "\n" + key + strings.Repeat("z", 1<<20),
		"a key without end": strings.Repeat("é", (maxErrorText-200)/2) + "\n" + open,
		"invalid UTF-8":     strings.Repeat("ä\xff", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, fn := range []agentFunc{fails(errors.New(said)), func(context.Context, prompt.Prompt) (agent.Reply, error) { panic(said) }} {
				var heard audience
				o := heard.options()
				o.Journal = &memory{}
				res := run(t, newTeam(t, member("a", fn)), o, spec("a"))
				got := res.Tasks[0].Error.Message
				require.LessOrEqual(t, len(got), maxErrorText+100)
				require.Greater(t, len(got), maxErrorText/2-100)
				require.True(t, utf8.ValidString(got))
				require.Regexp(t, `… \[cut: \d+ of \d+ KiB\]$`, got)
				require.NotContains(t, told(t, res, &heard), "canary")
				for _, x := range o.Journal.(*memory).exchanges() {
					require.LessOrEqual(t, len(x.Error), maxErrorText+100)
				}
			}
		})
	}
}
