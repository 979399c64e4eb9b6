// Package matcher decides whether a text matches a glob or a regular expression that a model, a
// server or the author of a spec wrote, and bounds the work of that.
//
//	re, err := matcher.Compile(`error: (\w+)`)
//	b := matcher.NewBudget(ctx, matcher.MaxSteps)
//	found, err := re.Match(b, line)
//
// All matches of one operation share a [Budget]. A match ends within milliseconds after the context of
// its budget has ended, and starts no goroutine. Globs and expressions that are too large are refused
// before they are compiled.
package matcher

import (
	"context"
	"fmt"
)

// MaxSteps is the budget of one operation, such as a search of a workspace. A step takes up to ten
// nanoseconds.
const MaxSteps = 20_000_000_000

// often is after how many steps a budget looks at its context.
const often = 1 << 20

// A Budget bounds the work of the matches of one operation. It is not safe for concurrent use.
type Budget struct {
	ctx     context.Context //nolint:containedctx // of one operation
	left    int
	checked int // steps since the last look at ctx
}

// NewBudget returns a budget of some steps, which ends with ctx.
func NewBudget(ctx context.Context, steps int) *Budget {
	return &Budget{ctx: ctx, left: steps}
}

// spend takes steps from the budget. If it is used up, the error is a [*LimitError] about the pattern;
// if ctx has ended, its cause.
func (b *Budget) spend(steps int, pattern string) error {
	if b.left -= steps; b.left < 0 {
		return &LimitError{pattern, "takes too much work to match"}
	}
	if b.checked += steps; b.checked < often {
		return nil
	}
	return b.look()
}

// look returns the cause of the end of ctx, if it has ended.
func (b *Budget) look() error {
	if b.checked = 0; b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	return nil
}

// A LimitError reports a glob or an expression that is too large, or whose matches take more work than
// a budget allows.
type LimitError struct {
	Pattern string
	Problem string // a predicate, such as "has more than 4096 bytes"
}

// maxShown is how much of a pattern an error quotes, in bytes.
const maxShown = 100

// Error names the beginning of the pattern, and says what to do about it.
func (e *LimitError) Error() string { return e.Reason() + "; write a simpler one" }

// Reason is Error for those who cannot change the pattern.
func (e *LimitError) Reason() string {
	shown, end := e.Pattern, ""
	if len(shown) > maxShown {
		shown, end = shown[:maxShown], "…"
	}
	return fmt.Sprintf("the pattern %q%s %s", shown, end, e.Problem)
}
