package redact_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/runteam/runteam/redact"
)

func ExampleRedactor_Text() {
	text, counts, err := redact.Secrets().Text("The database is postgres://app:hunter2@db.example/claims; password: Xk9#mP2q.")
	if err != nil {
		fmt.Println("withheld:", err)
		return
	}
	fmt.Println(text)
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		fmt.Println(kind, counts[kind])
	}
	// Output:
	// The database is postgres://[REDACTED:password]@db.example/claims; password: [REDACTED:password].
	// password 2
}

func ExampleDefault() {
	text, counts, err := redact.Default().Text("Mail to anna@claims.example or call +49 30 901820.")
	fmt.Println(text, counts.Total(), err)
	// Output: Mail to [REDACTED:email] or call [REDACTED:phone]. 2 <nil>
}

// A reader may see one kind in one place.
func ExampleRedactor_JSON() {
	r, err := redact.New(redact.DefaultKinds(), []redact.Pattern{{Name: "claim", Regexp: `\bC-\d{4}\b`}})
	if err != nil {
		fmt.Println(err)
		return
	}
	may := func(kind redact.Kind, path []string) bool {
		return kind == redact.Email && slices.Equal(path, []string{"to"})
	}
	value, redacted, revealed, _ := r.JSON(context.Background(), `{"cc":"ben@claims.example","subject":"C-2024","to":"anna@claims.example"}`, may)
	fmt.Println(value)
	fmt.Println(slices.Sorted(maps.Keys(redacted)), slices.Sorted(maps.Keys(revealed)))
	// Output:
	// {"cc":"[REDACTED:email]","subject":"[REDACTED:claim]","to":"anna@claims.example"}
	// [claim email] [email]
}

func ExampleRedactor_Stream() {
	ctx := context.Background()
	s := redact.Default().Stream(nil)
	for _, piece := range []string{"Write to an", "na@clai", "ms.example", ", she kn", "ows the", " claim. Th", "ank you."} {
		fmt.Printf("%q\n", s.Write(ctx, piece))
	}
	rest, redacted, _, err := s.Close(ctx)
	fmt.Printf("%q %v %v\n", rest, redacted, err)
	// Output:
	// "Write to "
	// ""
	// ""
	// ""
	// ""
	// "[REDACTED:email], she knows the claim. "
	// "Thank "
	// "you." map[email:1] <nil>
}
