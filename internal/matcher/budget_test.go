package matcher_test

import (
	"context"
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/matcher"
)

var errStopped = errors.New("stopped")

// requireStops requires that a match of a minute ends with its context, without a result.
func requireStops(t *testing.T, match func(b *matcher.Budget) error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan time.Time, 1)
	time.AfterFunc(50*time.Millisecond, func() { cancel(errStopped); ended <- time.Now() })
	err := match(matcher.NewBudget(ctx, 1<<60))
	require.Less(t, time.Since(<-ended), time.Second) // on a busy computer; it takes some milliseconds
	require.ErrorIs(t, err, errStopped)
}

func TestMatchesEndWithTheContext(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 4<<20)
	re, err := matcher.Compile(strings.Repeat("x?", 1_000) + "!")
	require.NoError(t, err)
	requireStops(t, func(b *matcher.Budget) error { _, err := re.Match(b, []byte(long)); return err })
	requireStops(t, func(b *matcher.Budget) error { _, err := re.MatchString(b, long); return err })
	requireStops(t, func(b *matcher.Budget) error { _, err := re.Find(b, long); return err })
	g, err := matcher.ParseGlob("**/" + strings.Repeat("*/", 1_000) + "!")
	require.NoError(t, err)
	requireStops(t, func(b *matcher.Budget) error { _, err := g.Match(b, strings.Repeat("x/", 200_000)); return err })
}

func TestBudgetsAreForAllMatchesTogether(t *testing.T) {
	t.Parallel()
	re, err := matcher.Compile("a[bc]") // of 4 instructions
	require.NoError(t, err)
	b := matcher.NewBudget(t.Context(), 10_000)
	for range 50 {
		found, err := re.MatchString(b, strings.Repeat("-", 30)+"ac")
		require.NoError(t, err)
		require.True(t, found)
	}
	for err == nil {
		_, err = re.MatchString(b, strings.Repeat("-", 30))
	}
	require.EqualError(t, err, `the pattern "a[bc]" takes too much work to match; write a simpler one`)
	gs, err := matcher.ParseGlobs([]string{"b", "**/a*"})
	require.NoError(t, err)
	_, err = gs.Match(matcher.NewBudget(t.Context(), 10), "x/y/abcdefg")
	require.EqualError(t, err, `the pattern "**/a*" takes too much work to match; write a simpler one`)
}

// anExpression draws regular expressions.
func anExpression() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{"a", "b", "aa", ".", "[ab]", "^", "$", `\b`, "(a|b)", "(?i:A)", "a*", "b+?", "(ab)?", "x{0,3}", "(a{2}b){1,3}", "|", `\pL`, "(?m:^a$)", "(?:)", "((b|)a){2,}"})
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, "pieces"), "") })
}

// A long text is read in another way than a short one.
func TestExpressionsMatchLikePackageRegexp(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("z", 150_000)
	rapid.Check(t, func(t *rapid.T) {
		expression := anExpression().Draw(t, "expression")
		want, err := regexp.Compile(expression)
		re, err2 := matcher.Compile(expression)
		require.Equal(t, err, err2)
		if err != nil {
			return
		}
		tail := rapid.StringOfN(rapid.RuneFrom([]rune("ab \nxé")), 0, 8, -1).Draw(t, "text")
		b := matcher.NewBudget(context.Background(), 1<<60)
		for _, text := range []string{tail, filler + tail, tail + filler} {
			found, err := re.MatchString(b, text)
			require.NoError(t, err)
			require.Equal(t, want.MatchString(text), found)
			found, err = re.Match(b, []byte(text))
			require.NoError(t, err)
			require.Equal(t, want.MatchString(text), found)
			at, err := re.Find(b, text)
			require.NoError(t, err)
			require.Equal(t, want.FindStringSubmatchIndex(text), at)
		}
	})
}

func TestInstructionsAreCountedBeforeTheyAreMade(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tree, err := syntax.Parse(anExpression().Draw(t, "expression"), syntax.Perl)
		if err != nil {
			t.Skip("not valid")
		}
		counted := matcher.Instructions(tree)
		made, err := syntax.Compile(tree.Simplify())
		require.NoError(t, err)
		require.GreaterOrEqual(t, counted, len(made.Inst))
		require.LessOrEqual(t, counted, 3*len(made.Inst)+10)
	})
}

func TestLimitsOfPatterns(t *testing.T) {
	t.Parallel()
	for pattern, problem := range map[string]string{
		strings.Repeat("x", 16<<10+1):    "has more than 16384 bytes",
		strings.Repeat("x{1000}", 10):    "compiles to more than 10000 instructions",
		strings.Repeat("(x{0,999})", 99): "compiles to more than 10000 instructions",
	} {
		_, err := matcher.Compile(pattern)
		var limit *matcher.LimitError
		require.ErrorAs(t, err, &limit)
		require.Equal(t, problem, limit.Problem)
	}
	for pattern, problem := range map[string]string{
		strings.Repeat("x", 4<<10+1):                             "has more than 4096 bytes",
		strings.Repeat("{a,b}", 10):                              "stands for more than 1000 alternatives",
		strings.Repeat("{,", 1_300) + strings.Repeat("}", 1_300): "stands for more than 1000 alternatives",
		strings.Repeat("x", 3_000) + strings.Repeat("{a,b}", 7):  "stands for more than 1000 alternatives", // they are long
	} {
		_, err := matcher.ParseGlob(pattern)
		var limit *matcher.LimitError
		require.ErrorAs(t, err, &limit)
		require.Equal(t, problem, limit.Problem)
	}
	for _, invalid := range []string{"{", "}", "a{b", "[", "[]", "[^]", `\`, `[a\]`, "{a]"} {
		_, err := matcher.ParseGlob(invalid)
		require.ErrorIs(t, err, matcher.ErrGlob, invalid)
	}
}

func BenchmarkGlob(b *testing.B) {
	gs, err := matcher.ParseGlobs([]string{"node_modules", "**/*.min.{js,css}", "src/**/test_[a-z]*.go"})
	require.NoError(b, err)
	budget := matcher.NewBudget(context.Background(), 1<<60)
	for b.Loop() {
		_, _ = gs.Match(budget, "src/internal/deep/folder/of/files/main_program.go")
	}
}
