package journal

import "time"

// Busy returns the options with another time for which a file may be locked by others.
func (o Options) Busy(d time.Duration) Options {
	o.busy = d
	return o
}

// Pages returns the options with a file of so many pages at most.
func (o Options) Pages(n int) Options {
	o.pages = n
	return o
}

// Version is the version of the schema.
var Version = version

// Inflate returns what was compressed.
func Inflate(text []byte) ([]byte, error) { return inflate(text) }

// Deflate compresses lines.
func Deflate(lines []byte) []byte { return deflate(lines) }
