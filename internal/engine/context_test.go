package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// sizes lets an agent note how long its prompts were.
func sizesOf(d *desk, name string) (sizes []int) {
	for _, p := range d.prompts[name] {
		sizes = append(sizes, len(p.System())+len(p.Text()))
	}
	return sizes
}

// What of all context was sent, computed by hand.
func TestRunReportsItsContext(t *testing.T) {
	t.Parallel()
	const mail = "ada@example.com"
	made := `{"iban":"DE89370400440532013000","mail":"` + mail + `","notes":"hush"}` // 68 bytes
	d := newDesk()
	tries := 0
	flaky := func(context.Context, prompt.Prompt) (agent.Reply, error) {
		if tries++; tries == 1 {
			return agent.Reply{}, errBroken
		}
		return agent.Reply{Text: "done"}, nil
	}
	policy := &handoff.Policy{Rules: []handoff.PairRule{
		{From: "maker", To: "reader", Allow: []task.Path{"/iban", "/mail"}, Reveal: map[redact.Kind][]task.Path{redact.IBAN: {"/iban"}}},
		{From: "maker", To: "other", Mode: handoff.Minimal},
	}}
	tm := governed(t, policy, member("maker", d.keeps(says(made))), member("reader", d.keeps(flaky)), member("other", d.keeps(says("o"))))
	maker, reader, other := shaped(spec("maker")), spec("reader", "maker"), spec("other", "maker", "reader")
	maker.Uses = []task.Use{{Name: "note"}}
	reader.MaxRetries, reader.RetryDelay = 1, task.NoDelay
	other.DependsOn[1].Optional = true
	res := run(t, tm, &engine.RunOptions{Inputs: []engine.Input{{Name: "note", Text: "12345678"}}}, maker, reader, other)
	require.NoError(t, res.Err())

	m, r, o := sizesOf(d, "maker"), sizesOf(d, "reader"), sizesOf(d, "other")
	require.Len(t, r, 2, "one more for the retry")
	const delivered = len(`{"iban":"DE89370400440532013000","mail":"[REDACTED:email]"}`)
	one := len("12345678")
	two := one + of(t, res, "maker").Envelope.Size()
	three := two + len("done")
	whole := len(of(t, res, "maker").Structured)
	require.Equal(t, event.Context{
		Prompts: 4,
		Sent:    m[0] + r[0] + r[1] + o[0],
		// Each prompt with all that there was in the place of what it was given.
		Shared:   (m[0] - one + one) + (r[0] - delivered + two) + (r[1] - delivered + two) + (o[0] - len("done") + three),
		Redacted: 2, // the address, in each attempt
		Revealed: 2,
		Withheld: 3, // the notes, in each attempt, and all of it from other

		TokensSaved: 2*(gate.Tokens(whole)-gate.Tokens(delivered)) + gate.Tokens(two-one),
	}, res.Context)
}

// A translation is a prompt, and its redactions count.
func TestContextCountsTranslations(t *testing.T) {
	t.Parallel()
	d := newDesk()
	tm := governed(t, summarizing(50), member("maker", d.keeps(says("write to ada@example.com"))), member("reader", d.keeps(retells(says("short"), says("done")))))
	res := run(t, tm, nil, spec("maker"), spec("reader", "maker"))
	require.NoError(t, res.Err())
	m, r := sizesOf(d, "maker"), sizesOf(d, "reader")
	require.Len(t, r, 2)
	made := len("write to ada@example.com")
	require.Equal(t, event.Context{
		Prompts: 3, Sent: m[0] + r[0] + r[1], Shared: m[0] + r[0] + (r[1] - len("short") + made), Redacted: 1, TokensSaved: gate.Tokens(made) - gate.Tokens(len("short")),
	}, res.Context)

	// What was never asked is no prompt.
	tm = governed(t, summarizing(50), member("maker", says("x")), member("reader", never(t)))
	res = run(t, tm, &engine.RunOptions{Recorder: refusing("/retell/")}, spec("maker"), spec("reader", "maker"))
	require.Equal(t, codes.Record, of(t, res, "reader").Error.Code)
	require.Equal(t, 1, res.Context.Prompts)
}
