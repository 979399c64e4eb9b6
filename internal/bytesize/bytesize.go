// Package bytesize rounds and writes numbers of bytes.
package bytesize

import (
	"math"
	"strconv"
)

// Class rounds a number of bytes up to 1 KiB, 4 KiB, 16 KiB and so on, for files
// and logs that readers of any clearance may have. The classes are coarse, so that
// names, codes and short records are all alike. Zero means that there is no value,
// and stays zero.
func Class(bytes int) int {
	if bytes <= 0 {
		return 0
	}
	class := smallestClass
	for class < bytes && class <= math.MaxInt/4 {
		class *= 4
	}
	return max(class, bytes)
}

const smallestClass = 1 << 10

// Text writes a number of bytes for people, in the units of the size limits:
// "1 byte", "1000 bytes", "1.5 KiB", "256 KiB", "4 MiB". It rounds to one decimal of a
// KiB, and to two of a MiB.
func Text(bytes int) string {
	switch n := math.Round(float64(bytes)/(1<<10)*10) / 10; {
	case bytes == 1:
		return "1 byte"
	case bytes < 1<<10:
		return strconv.Itoa(bytes) + " bytes"
	case n < 1<<10:
		return strconv.FormatFloat(n, 'f', -1, 64) + " KiB"
	}
	return strconv.FormatFloat(math.Round(float64(bytes)/(1<<20)*100)/100, 'f', -1, 64) + " MiB"
}

// ClassText writes the [Class] of a number of bytes for people, such as "up to 4 KiB".
// No bytes count as one byte. Logs, which may have any viewer, show sizes in this form.
func ClassText(bytes int) string { return "up to " + Text(Class(max(bytes, 1))) }
