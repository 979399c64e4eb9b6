package flow_test

import (
	"flag"
	"testing"

	"github.com/runteam/runteam/internal/slowtest"
)

func TestMain(m *testing.M) {
	if !slowtest.Enabled() {
		_ = flag.Set("rapid.checks", "25") // the command line may set more
	}
	m.Run()
}
