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
