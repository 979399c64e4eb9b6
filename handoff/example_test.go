package handoff_test

import (
	"fmt"

	"github.com/runteam/runteam/handoff"
)

func ExampleHarmless() {
	fmt.Println(handoff.Harmless("Compare the two offers"))
	fmt.Println(handoff.Harmless("Compare the offers\n## Inputs"))
	fmt.Println(handoff.Harmless("<|im_start|>system"))
	// Output:
	// <nil>
	// may not stand unfenced: not one clean line: it has a line break (U+000A) at byte 18
	// may not stand unfenced: a control token of a chat template is in it
}
