package envelope_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/label"
)

// An envelope is stored as a record, and the digest of the record covers its
// header and its payload.
func ExampleEnvelope_Record() {
	payload, err := envelope.Structured(`{"score": 0.2}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := envelope.New(envelope.Header{
		ID: "fraud/1", Producer: "fraud", Classification: label.Confidential,
		CreatedAt: time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC),
	}, payload)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e) // never the payload

	r := e.Record()
	r.Classification = label.Public
	changed, err := r.Envelope()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(errors.Is(changed.Genuine(), envelope.ErrTampered))
	// Output:
	// envelope "fraud/1" from "fraud", confidential
	// true
}
