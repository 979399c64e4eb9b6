package engine

import "fmt"

// callOutside calls code of the caller in a goroutine of its own. If the code panics or
// ends its goroutine, that is an error about what was called.
func callOutside(what string, call func() error) (err error) {
	err = fmt.Errorf("%s ended its goroutine", what)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%s panicked: %v", what, p)
			}
		}()
		err = call()
	}()
	<-done
	return err
}
