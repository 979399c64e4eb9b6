package format

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumber(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		require.Equal(t, want, Number(n))
	}
}

func TestTasksThatRun(t *testing.T) {
	t.Parallel()
	for want, n := range map[string][2]int{
		"1 task that runs at most 3 times":         {1, 3},
		"1 task that runs at most 1 time":          {1, 1},
		"2 tasks that run at most 1,000 times":     {2, 1000},
		"1,000 tasks that run at most 1,001 times": {1000, 1001},
	} {
		require.Equal(t, want, TasksThatRun(n[0], n[1]))
	}
}
