package label_test

import (
	"fmt"

	"github.com/runteam/runteam/label"
)

// A value that is made from two others is as sensitive as the more sensitive one.
func ExampleClassification_Join() {
	score, notes := label.Internal, label.Confidential
	letter := score.Join(notes)
	fmt.Println(letter, letter > label.Internal)
	// Output: confidential true
}

func ExampleParseClassification() {
	fmt.Println(label.ParseClassification("secret"))
	fmt.Println(label.ParseClassification("Secret"))
	// Output:
	// secret <nil>
	// secret unknown label "Secret": write one of public, internal, confidential, secret
}
