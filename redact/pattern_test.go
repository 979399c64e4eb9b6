package redact_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/redact"
)

// A countdown is a context that ends after it was asked a number of times: a deadline without a
// clock.
type countdown struct {
	context.Context
	left  int
	asked int // since it ended
}

var errOver = errors.New("over")

func (c *countdown) Err() error {
	if c.left--; c.left >= 0 {
		return nil
	}
	c.asked++
	return context.DeadlineExceeded
}

func (c *countdown) Value(any) any { return nil } // context.Cause must not find another context

// slow compiles to nearly as many instructions as a pattern may, and looks at all of them for each
// character.
const slow = `(?:[a-z0-9]{1,10}x){1,40}9z`

// An own pattern stops in the middle of a text when the context ends, and nothing of the text comes
// back.
//
// Requirement: G29.
func TestOwnPatternStopsWithItsContext(t *testing.T) {
	t.Parallel()
	r, err := redact.New(nil, []redact.Pattern{{"slow", slow}})
	require.NoError(t, err)
	text := strings.Repeat("0x1x2x", 1<<20/6)
	for name, redacts := range map[string]func(context.Context) (string, error){
		"text": func(ctx context.Context) (string, error) {
			out, _, _, err := r.TextRevealing(ctx, text, nil)
			return out, err
		},
		"JSON": func(ctx context.Context) (string, error) {
			out, _, _, err := r.JSON(ctx, `["`+text+`"]`, nil)
			return out, err
		},
	} {
		ctx := &countdown{Context: t.Context(), left: 20}
		out, err := redacts(ctx)
		require.ErrorIs(t, err, redact.ErrStopped, name)
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
		require.Empty(t, out)
		require.Less(t, ctx.asked, 10, "%s: it goes on when the context has ended", name)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errOver)
	_, _, _, err = r.TextRevealing(ctx, "nothing", nil)
	require.ErrorIs(t, err, errOver)
}

// The built-in detectors stop too.
//
// Requirement: G29.
func TestRedactionStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx := &countdown{Context: t.Context(), left: 3}
	out, _, _, err := redact.All().TextRevealing(ctx, strings.Repeat("otp:", 1<<20), nil)
	require.ErrorIs(t, err, redact.ErrStopped)
	require.Empty(t, out)
	require.Less(t, ctx.asked, 10)
}

func TestPatternsAreBounded(t *testing.T) {
	t.Parallel()
	_, err := redact.New(nil, []redact.Pattern{{"long", `(?:[a-z0-9]{1,25}x){1,40}`}})
	require.Error(t, err)
	require.ErrorContains(t, err, `pattern "long": compiles to 2041 instructions, at most 1000 are allowed: shorten what it repeats`)
	var many []redact.Pattern
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		many = append(many, redact.Pattern{Name: name, Regexp: `(?:[a-z0-9]{1,10}x){1,40}` + name + "7"})
	}
	_, err = redact.New(nil, many[:4])
	require.NoError(t, err)
	_, err = redact.New(nil, many)
	require.Error(t, err)
	require.ErrorContains(t, err, "of all patterns together, at most 4000 are allowed: shorten")
}

// Matches are those that package regexp finds one after the other, with the text before and after
// each.
func TestPatternsMatchLikeRegexp(t *testing.T) {
	t.Parallel()
	exprs := []string{
		`Q-\d+`, `\bQ\b`, `^Q`, `(?m)^Q-?`, `Q$`, `(?m)Q$`, `\BQ`, `(Q)(-)(\d)`, `(?i)q-1`, `(?:Q-|é)+?`, `-.*?1`, `(?U)Q.+`, `[Q1é ]{2}`, `1|11|111`, `\QQ-`, `é\b`, `\x{65e5}+`, `(?s)Q.`, `\AQ-1`, `1\z`, `Q-1`,
	}
	rapid.Check(t, func(t *rapid.T) {
		expr := rapid.SampledFrom(exprs).Draw(t, "expr")
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"Q", "-", "1", "12", "q", "é", "日", " ", "\n", "x"}), 0, 30).Draw(t, "text"), "")
		r, err := redact.New(nil, []redact.Pattern{{"own", expr}})
		require.NoError(t, err)
		want := regexp.MustCompile(expr).ReplaceAllString(text, "[REDACTED:own]")
		if again := regexp.MustCompile(expr).ReplaceAllString(want, "[REDACTED:own]"); again != want {
			return // what surrounds a placeholder is another text
		}
		got, _, err := r.Text(text)
		require.NoError(t, err)
		require.Equal(t, want, got, "%s in %q", expr, text)
	})
}
