package bytesize_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/bytesize"
)

// Requirement: G50.
func TestClass(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int]int{
		-1: 0, 0: 0, 1: 1 << 10, 1 << 10: 1 << 10, 1<<10 + 1: 4 << 10, 4 << 10: 4 << 10, 1 << 20: 1 << 20, 1<<20 + 1: 4 << 20, math.MaxInt: math.MaxInt,
	} {
		require.Equal(t, want, bytesize.Class(bytes), bytes)
		require.Equal(t, want, bytesize.Class(want), bytes)
	}
}

func TestTextUsesBinaryUnits(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int]string{
		0: "0 bytes", 1: "1 byte", 1000: "1000 bytes", 1023: "1023 bytes", 1 << 10: "1 KiB", 1240: "1.2 KiB", 2001: "2 KiB", 256 << 10: "256 KiB", 710_656: "694 KiB",
		1<<20 - 1: "1 MiB", 1 << 20: "1 MiB", 2_500_000: "2.38 MiB", 4<<20 + 200_000: "4.19 MiB", 4 << 20: "4 MiB",
	} {
		require.Equal(t, want, bytesize.Text(bytes))
	}
	require.Equal(t, "up to 1 KiB", bytesize.ClassText(0))
	require.Equal(t, "up to 4 KiB", bytesize.ClassText(1025))
}
