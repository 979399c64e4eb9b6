package history

import (
	"strconv"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/exit"
)

// parseAge parses a duration of Go, or a number of days such as 30d.
func parseAge(text string) (time.Duration, error) {
	if text == "" {
		return 0, exit.Usagef("--older-than is required: write a time such as 30d or 720h")
	}
	age, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		const day = 24 * time.Hour
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		age = time.Duration(n) * day
	}
	if err != nil || age < 0 {
		return 0, exit.Usagef("--older-than %q: write a time such as 30d or 720h", text)
	}
	return age, nil
}
