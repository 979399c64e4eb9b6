package flowtest_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/runteam/runteam/flowtest"
	"github.com/runteam/runteam/spec"
)

// A test asserts that a reader never sees a value. This spec breaks the assertion.
func Example() {
	t := newPrinter() // in a test, the *testing.T
	defer os.RemoveAll(t.dir)
	f := flowtest.LoadOptions(t, spec.Options{Path: "-", Stdin: strings.NewReader(`
name: claims
agents:
  - name: reader
  - name: letters
tasks:
  - title: Extract the facts
    description: Read the claim.
    assignee: reader
    outputSchema: {type: object, properties: {holder: {type: string}, note: {type: string}}}
  - title: Write the letter
    description: Answer the holder.
    assignee: letters
    dependsOn: [Extract the facts]
`)})
	note := f.PlantResult("Extract the facts", "/note")
	f.Never(note, "letters")
	f.Run(t)
	fmt.Println(strings.ReplaceAll(t.failure, note.String(), "canary"))
	// Output:
	// flowtest: asserted that /note of the result of "Extract the facts" (canary) never reaches letters, but it is in the prompt of "Write the letter" (letters)
}

// A printer is a test that keeps the first line of a failure.
type printer struct {
	testing.TB
	dir     string
	failure string
}

func newPrinter() *printer {
	dir, err := os.MkdirTemp("", "flowtest")
	if err != nil {
		panic(err)
	}
	return &printer{dir: dir}
}

func (p *printer) Helper()                  {}
func (p *printer) TempDir() string          { return p.dir }
func (p *printer) Context() context.Context { return context.Background() }
func (p *printer) Logf(string, ...any)      {}
func (p *printer) Error(args ...any)        { p.Errorf("%s", fmt.Sprint(args...)) }

func (p *printer) Errorf(format string, args ...any) {
	p.failure, _, _ = strings.Cut(fmt.Sprintf(format, args...), "\n")
}

func (p *printer) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
