package format

import (
	"fmt"
	"strings"

	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// Plural counts things: "1 task", "12,000 tasks".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Number(n) + " " + what + "s"
}

// TasksThatRun says how many tasks are written, and how often they run at most with all rounds and items.
func TasksThatRun(tasks, runs int) string {
	if tasks == runs {
		return Plural(tasks, "task")
	}
	verb := "run"
	if tasks == 1 {
		verb = "runs"
	}
	return Plural(tasks, "task") + " that " + verb + " at most " + Plural(runs, "time")
}

// TaskRuns counts the tasks of a run by their titles: "4 tasks", or with rounds and items "6 runs of 4 tasks".
func TaskRuns(titles []string) string {
	written := map[string]bool{}
	for _, title := range titles {
		written[naming.WithoutInstance(title)] = true
	}
	text := Plural(len(written), "task")
	if n := len(titles); n != len(written) {
		text = Plural(n, "run") + " of " + text
	}
	return text
}

// Number writes n with commas between thousands.
func Number(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Bytes writes a size as people read it: 512 bytes, 71.7 KB, 266 KB, 1.2 MB.
func Bytes(n int) string {
	if n < 1000 {
		return Plural(n, "byte")
	}
	size, unit := float64(n)/1000, 0
	for ; size >= 999.5 && unit < 3; unit++ {
		size /= 1000
	}
	if size < 99.95 {
		return fmt.Sprintf("%.1f %s", size, [...]string{"KB", "MB", "GB", "TB"}[unit])
	}
	return fmt.Sprintf("%.0f %s", size, [...]string{"KB", "MB", "GB", "TB"}[unit])
}

// OutcomeCounts returns "3 of 9 tasks completed, 3 failed (2 accepted), 1 cancelled, 1 interrupted, 2 skipped,
// 1 not needed".
func OutcomeCounts(o record.Outcomes, of string) string {
	var text strings.Builder
	text.WriteString(fmt.Sprintf("%s of %s completed", Number(o.Completed), of))
	for _, part := range []struct {
		n    int
		word string
	}{{o.Failed, Failed + acceptedOf(o)}, {o.Cancelled, Cancelled}, {o.Interrupted, Interrupted}, {o.NotRun, Skipped}, {o.NotNeeded, NotNeeded}} {
		if part.n > 0 {
			text.WriteString(fmt.Sprintf(", %s %s", Number(part.n), part.word))
		}
	}
	return text.String()
}

// acceptedOf says how many of the failures are accepted; it is empty for none.
func acceptedOf(o record.Outcomes) string {
	switch o.Accepted {
	case 0:
		return ""
	case o.Failed:
		return Accepted
	}
	return fmt.Sprintf(" (%s accepted)", Number(o.Accepted))
}

// List joins at most so many names, and says how many more there are.
func List(names []string, most int) string { return ListOf(names, most, len(names)) }

// ListOf is [List] for names that are the first of a total.
func ListOf(names []string, most, total int) string {
	more := ""
	if n := total - most; n > 0 {
		names, more = names[:most], fmt.Sprintf(" and %d more", n)
	}
	clean := make([]string, len(names))
	for i, n := range names {
		clean[i] = terminal.CleanLine(n)
	}
	return strings.Join(clean, ", ") + more
}

// Tags names the tags of a text, such as "tags draft, legal".
func Tags(tags []string) string {
	word := "tag "
	if len(tags) > 1 {
		word = "tags "
	}
	return word + terminal.CleanLine(strings.Join(tags, ", "))
}

// Tokens returns the used tokens behind a separator; it is empty if none were counted.
func Tokens(u llm.Usage, before string) string {
	if u.InputTokens+u.OutputTokens == 0 {
		return ""
	}
	return fmt.Sprintf("%s%s tokens in%s, %s out%s", before, Number(u.InputTokens), included(u.CachedTokens, "cached"), Number(u.OutputTokens), included(u.ReasoningTokens, "reasoning"))
}

// included returns how many of the tokens are of a kind, in parentheses; it is empty if none are.
func included(n int, kind string) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%s %s)", Number(n), kind)
}

// NamePrefix returns a name and a colon to begin a sentence; it is empty without a name.
func NamePrefix(name string) string {
	if name == "" {
		return ""
	}
	return terminal.CleanLine(name) + ": "
}

// ApproximationMark returns the mark before numbers that are not exact.
func ApproximationMark(rounded bool) string {
	if rounded {
		return "~"
	}
	return ""
}

// Partial adds to a text that it leaves out what the caller may not see.
func Partial(text string, partial bool) string {
	switch {
	case !partial:
		return text
	case text == "":
		return "partial"
	}
	return text + ", partial"
}

// Status returns a status in words.
func Status(s task.Status) string { return strings.ReplaceAll(string(s), "_", " ") }

// WhyNotNeeded returns the reason of a task that was not needed as a clause behind that status.
func WhyNotNeeded(reason string) string {
	return strings.TrimSuffix(strings.TrimPrefix(reason, "Not needed: "), ".")
}

// The words for how a task ended.
const (
	Completed = "completed"
	Failed    = "failed"
	Accepted  = " (accepted)" // behind Failed: the run can succeed all the same
	Cancelled = "cancelled"   // it was in progress when the run ended
	Skipped   = "skipped"     // it never began
	NotNeeded = "not needed"

	Interrupted = "interrupted" // it was in progress when the process of the run was gone
)

// Dollars writes an amount of money, with more digits if it is small.
func Dollars(m llm.Money) string {
	switch amount := m.Dollars(); {
	case amount == 0:
		return "$0"
	case amount < 0.0001:
		return "<$0.0001"
	case amount < 1:
		return fmt.Sprintf("$%.4f", amount)
	default:
		return fmt.Sprintf("$%.2f", amount)
	}
}
