package files

import (
	"os"

	"github.com/runteam/runteam/internal/cli/exit"
)

// LazyOutput is a new file that appears with the first thing that is written to
// it, so that a run that never starts replaces nothing.
type LazyOutput struct {
	Output *Output
	File   *os.File
}

// Write creates the file if it is the first call, and writes to it.
func (f *LazyOutput) Write(p []byte) (int, error) {
	if f.File == nil {
		var err error
		if f.File, err = f.Output.create(); err != nil {
			return 0, err
		}
	}
	n, err := f.File.Write(p)
	return n, exit.WithoutPath(err) // the file knows its first name only
}

// Sync brings what was written to the disk.
func (f *LazyOutput) Sync() error {
	if f.File == nil {
		return nil
	}
	return exit.WithoutPath(f.File.Sync())
}

// Close closes the file if it was created.
func (f *LazyOutput) Close() error {
	if f.File == nil {
		return nil
	}
	return exit.WithoutPath(f.File.Close())
}
