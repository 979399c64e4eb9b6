package format

import (
	"fmt"
	"time"
)

// Seconds formats a duration that is shown while it grows: 0s, 42s, 3m05s.
func Seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%ds", int(max(d, 0).Seconds()))
	}
	return Elapsed(d)
}

// Elapsed formats a duration: 0.3s, 42.0s, 3m05s, 2h03m.
func Elapsed(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", max(d, 0).Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// Time formats a time in the local time zone; the zero time is a hyphen.
func Time(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime)
}
