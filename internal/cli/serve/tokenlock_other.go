//go:build !unix

package serve

import "os"

// lockOld locks nothing: this system would refuse readers of a locked file.
func lockOld(string) (*os.File, error) { return nil, nil }

// lockNew locks nothing, as lockOld.
func lockNew(string) (*os.File, error) { return nil, nil }

// unlock does nothing, as no file is locked.
func unlock(*os.File) {}
