//go:build !unix

package serve

import "os"

// linkSignals returns no signals: this system has none for it.
func linkSignals() (signals <-chan os.Signal, stop func()) { return nil, func() {} }

// linkCommand returns "": only Enter requests another link here.
func linkCommand() string { return "" }
