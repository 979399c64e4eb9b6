package pick_test

import (
	"encoding/json"
	"fmt"

	"github.com/runteam/runteam/internal/pick"
)

func ExampleSelection_Apply() {
	s, err := pick.Everything().Only("/score", "/items/*/id", "/applicant/**")
	if err != nil {
		panic(err)
	}
	if s, err = s.Except("ssn"); err != nil {
		panic(err)
	}
	got := s.Apply(map[string]any{
		"score":     json.Number("7"),
		"items":     []any{map[string]any{"id": "a", "note": "x"}, map[string]any{"id": "b"}},
		"applicant": map[string]any{"name": "Ada", "SSN": "078-05-1120"},
		"rationale": "long",
	})
	out, err := json.Marshal(got.Value)
	fmt.Println(string(out), err)
	fmt.Println("kept   ", got.Kept)
	fmt.Println("dropped", got.Dropped)
	fmt.Println("rule   ", s)
	// Output:
	// {"applicant":{"name":"Ada"},"items":[{"id":"a"},{"id":"b"}],"score":7} <nil>
	// kept    [/applicant/name /items/*/id /score]
	// dropped [/applicant/SSN /items/*/note /rationale]
	// rule    /applicant/**, /items/*/id, /score except ssn
}

func ExampleSelection_MayPass() {
	s, err := pick.Everything().Only("/items/*/id", "/facts/**")
	if err != nil {
		panic(err)
	}
	fmt.Println(s.MayPass([]string{"items", "*", "price"}), s.MayPass([]string{"facts", "age"}), s.MayPassName("price"))
	// Output: false true true
}
