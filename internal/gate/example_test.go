package gate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// An orchestrator hands a customer's ticket to a summarizer, which needs the
// text and the category, and nothing else.
func Example() {
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	ticket := gate.Source{Kind: handoff.Dependency, Name: "ticket"}

	// 1. The specialist publishes what it is able and allowed to do.
	summarizer := gate.Capabilities{
		Agent:      "summarizer",
		Accepts:    label.Confidential,
		Produces:   label.Confidential,
		OutputTags: []string{"summary", "category"},
		MaxSession: 2 * time.Minute,
	}

	// 2. The orchestrator asks for a session, and says what may cross in it.
	request := gate.Request{
		Session: "run-1/summarize/1", Run: "run-1", Task: "summarize",
		Caller:         "orchestrator",
		Classification: label.Confidential,
		RequiredTags:   []string{"summary"},
		Grants:         []gate.Grant{{Source: ticket, Paths: []task.Path{"/ticket_text", "/category"}, Line: "need"}},
	}

	// 3. The handshake. If the two do not fit, it fails, and no data flows.
	contract, err := gate.Negotiate(request, &summarizer)
	if err != nil {
		fmt.Println(err)
		return
	}
	compartment := gate.Compartment{Contract: contract}

	// 4. The orchestrator wraps what it has, most of which is not for the summarizer.
	payload, _ := envelope.Structured(`{
		"ticket_text": "card 4111-1111-1111-1111 charged twice. user@example.com",
		"category": "billing",
		"internal_note": "VIP customer, escalate fast",
		"user_pii": "ssn 123-45-6789"
	}`)
	raw, _ := envelope.New(envelope.Header{
		ID: "e-1", Producer: "orchestrator", Classification: label.Confidential, CreatedAt: now,
	}, payload)

	// 5. The gate narrows and redacts on the way out.
	safe, err := compartment.GateOutbound(context.Background(), &gate.Offer{Source: ticket, Title: "Ticket", Envelope: raw}, now)
	crossed, _ := safe.Payload().JSON()
	fmt.Println(crossed, err)
	fmt.Println("kept:", safe.Decision().Parts().Kept, "dropped:", safe.Decision().Parts().Dropped, "redacted:", safe.Decision().Redacted)

	// 6. And it rules on what comes back: first without the tag that was asked for, then with it.
	reply := gate.Reply{Session: contract.Session, ID: "e-2", Text: "Charged twice, wants a refund."}
	_, _, err = compartment.GateInbound(reply, []gate.Sealed{safe}, nil, now)
	fmt.Println(err)
	reply.Tags = []string{"summary"}
	result, _, err := compartment.GateInbound(reply, []gate.Sealed{safe}, nil, now)
	h := result.Header()
	fmt.Println(h.Producer, h.Classification, h.Trust, h.Tags, "from", h.DerivedFrom, err)
	// Output:
	// {"category":"billing","ticket_text":"card [REDACTED:card] charged twice. [REDACTED:email]"} <nil>
	// kept: [/category /ticket_text] dropped: [/*] redacted: map[card:1 email:1]
	// dependency from "summarizer" is withheld by tags: the reply lacks the required tags ["summary"]
	// summarizer confidential untrusted [summary] from [e-1] <nil>
}

// A policy governs the edge between two agents: what may cross, what must not,
// and what is said about it.
func ExampleCompile() {
	policy := handoff.Policy{Rules: []handoff.PairRule{
		{From: "fraud", To: "recommendation", Allow: []task.Path{"/fraud_score", "/risk_level"}, Origin: provenance.Position{File: "team.yaml", Line: 20}},
		{From: handoff.Anyone, To: handoff.Anyone, Block: []task.Path{"internal_notes"}},
	}}
	book, err := gate.Compile(&policy, []gate.Party{{Name: "fraud"}, {Name: "recommendation"}, {Name: "letters", Default: handoff.Minimal}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, reader := range []string{"recommendation", "letters", handoff.User} {
		terms := book.Between("fraud", reader)
		rule, line := terms.Stated()
		delivers, _ := terms.Delivers(nil)
		fmt.Printf("%s: %s (%s %s) delivers %v\n", reader, terms.Mode(), rule, line, delivers)
	}
	// What cannot be meant is said before anything runs.
	fmt.Println(book.Between("fraud", "recommendation").Contradiction([]task.Path{"/internal_notes"}))
	// Output:
	// recommendation: scoped (fraud→recommendation team.yaml:20) delivers /fraud_score, /risk_level except internal_notes
	// letters: minimal (agent default handoff of agent "letters") delivers nothing
	// user: full ( ) delivers everything
	// nothing that it needs may be delivered by fraud→recommendation (team.yaml:20): let need, allow and block leave something in common
}

// Decide says what would happen, and delivers nothing.
func ExampleCompartment_Decide() {
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	policy := handoff.Policy{Declassify: []handoff.Declassifier{
		{Entry: handoff.Entry{Name: "score-to-letters", From: "fraud", To: "letters", Reason: "a number between 0 and 1"}, Paths: []task.Path{"/fraud_score"}, LowerTo: label.Internal},
	}}
	book, _ := gate.Compile(&policy, []gate.Party{{Name: "fraud"}, {Name: "letters"}})
	source := gate.Source{Kind: handoff.Dependency, Name: "score-fraud"}
	grant := gate.WholeOf(source, "team.yaml:31 dependsOn")
	grant.Terms = book.Between("fraud", "letters")
	contract, _ := gate.Negotiate(gate.Request{Session: "run-1/write/1", Task: "write", Grants: []gate.Grant{grant}},
		&gate.Capabilities{Agent: "letters"}) // which accepts what is internal
	compartment := gate.Compartment{Contract: contract}

	for _, raw := range []string{`{"fraud_score": 0.2, "evidence": "seen twice"}`, `{"evidence": "seen twice"}`} {
		payload, _ := envelope.Structured(raw)
		e, _ := envelope.New(envelope.Header{ID: "e-1", Producer: "fraud", Classification: label.Confidential, CreatedAt: now}, payload)
		d, _ := compartment.Decide(context.Background(), &gate.Offer{Source: source, Envelope: e}, now)
		fmt.Println(d.Verdict, d.Before, d.After, d.Parts().Kept, d.Parts().Dropped, d.Entries, d.Err())
	}
	// Output:
	// passed confidential internal [/fraud_score] [/*] [{lowered score-to-letters}] <nil>
	// held confidential confidential [] [/*] [] dependency from "fraud" is withheld by score-to-letters: none of the granted parts is in it: /fraud_score (team.yaml:31 dependsOn)
}

func ExampleCheckUnfenced() {
	fmt.Println(gate.CheckUnfenced("Compare the two offers"))
	fmt.Println(gate.CheckUnfenced("Compare the offers\n## Inputs"))
	fmt.Println(gate.CheckUnfenced("<|im_start|>system"))
	// Output:
	// <nil>
	// may not stand unfenced: not one clean line: it has a line break (U+000A) at byte 18
	// may not stand unfenced: a control token of a chat template is in it
}
