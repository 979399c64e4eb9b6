package flowtest_test

import (
	"testing"

	"github.com/runteam/runteam/flowtest"
)

func TestClaims(t *testing.T) {
	t.Parallel()
	f := flowtest.Load(t, "../examples/claims/team.yaml")
	claim := f.PlantInput("claim")
	policy := f.PlantInput("policy")
	note := f.PlantResult("Extract the facts", "/claim/number")
	letter := f.PlantResult("Letter to the customer", "")
	f.Never(claim, "service-desk", "policy-desk")
	f.Reaches(claim, "intake", "estimates")
	f.Reaches(policy, "policy-desk")
	f.Reaches(note, "letters")
	f.Reaches(letter, "user")
	f.Run(t)
}
