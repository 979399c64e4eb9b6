package audit_test

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
)

func Example() {
	var file bytes.Buffer
	chain, err := audit.New(&file, audit.Options{Run: "run-1", Time: time.Unix(0, 0)})
	if err != nil {
		panic(err)
	}
	err = chain.Append(
		event.Handoff{From: "reader", To: "writer", Ruling: event.Ruling{Verdict: gate.Passed, Rule: "POLICY-DEFAULT"}},
		event.Handoff{From: "payroll", To: "writer", Ruling: event.Ruling{Verdict: gate.Withheld, Rule: "CLEARANCE"}},
	)
	if err != nil {
		panic(err)
	}
	head, err := chain.Close(time.Unix(60, 0)) // to be kept where the file is not
	if err != nil {
		panic(err)
	}

	r, _ := audit.Verify(strings.NewReader(file.String()), audit.VerifyOptions{Head: head})
	fmt.Printf("%s: %d decisions, %d held\n", r.Status, r.Decisions, r.Withheld)

	edited := strings.Replace(file.String(), `"verdict":"held"`, `"verdict":"passed"`, 1)
	r, _ = audit.Verify(strings.NewReader(edited), audit.VerifyOptions{Head: head})
	fmt.Printf("%s at line %d: %s\n", r.Status, r.Line, r.Why)
	// Output:
	// verified: 2 decisions, 1 held
	// broken at line 3: its digest does not match: it was altered
}
