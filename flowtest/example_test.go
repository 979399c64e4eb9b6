package flowtest_test

import (
	"testing"

	"github.com/runteam/runteam/flowtest"
)

func Example() {
	_ = func(t *testing.T) { // func TestClaims(t *testing.T)
		f := flowtest.Load(t, "team.yaml")
		claim := f.PlantInput("claim")
		note := f.PlantResult("Extract the facts", "/internal_notes/0")
		f.Never(claim, "letters")
		f.Reaches(note, "fraud")
		f.Run(t)
	}
}
