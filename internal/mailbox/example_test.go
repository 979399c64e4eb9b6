package mailbox_test

import (
	"fmt"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/label"
)

func Example() {
	bus, err := mailbox.New([]string{"analyst", "scorer", "writer"}, mailbox.Options{Edges: []handoff.Edge{{From: "analyst", To: "writer"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = bus.Send(mailbox.Draft{
		From: "analyst", To: "writer", Content: "The claim is for 1,200 euros.",
		Classification: label.Confidential, TTL: time.Hour,
	})
	_, _ = bus.Broadcast(mailbox.Draft{From: "user", Content: "Be brief."})
	_, err = bus.Send(mailbox.Draft{From: "analyst", To: "scoer", Content: "?"})
	fmt.Println(err)

	// The gate will say who may read what; here only what is internal passes.
	cleared := func(m mailbox.Message) bool { return m.Envelope.Classification() <= label.Internal }
	taken, _ := bus.Take("writer", cleared)
	for _, m := range taken {
		fmt.Println("taken:", m)
	}
	waiting, _ := bus.Unread("writer")
	for _, m := range waiting {
		fmt.Println("waits:", m)
	}
	// Output:
	// send: unknown agent "scoer": did you mean "scorer"?
	// taken: message "message/2" from "user" to "*", internal
	// waits: message "message/1" from "analyst" to "writer", confidential
}

func ExampleBus_Subscribe() {
	bus, err := mailbox.New([]string{"analyst", "writer"}, mailbox.Options{Edges: []handoff.Edge{{From: "analyst", To: "writer"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	cancel, err := bus.Subscribe("writer", func(m mailbox.Message) { fmt.Println("sent:", m) })
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = bus.Send(mailbox.Draft{From: "analyst", To: "writer", Content: "Done."})
	cancel()
	_, _ = bus.Send(mailbox.Draft{From: "analyst", To: "writer", Content: "Not heard."})
	// Output:
	// sent: message "message/1" from "analyst" to "writer", internal
}

func ExampleFromSnapshot() {
	team := []string{"analyst", "writer"}
	bus, err := mailbox.New(team, mailbox.Options{Run: "run-1", Edges: []handoff.Edge{{From: "analyst", To: "writer"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	first, _ := bus.Send(mailbox.Draft{From: "analyst", To: "writer", Content: "One."})
	_, _ = bus.Send(mailbox.Draft{From: "analyst", To: "writer", Content: "Two."})
	_ = bus.MarkRead("writer", first)

	again, err := mailbox.FromSnapshot(bus.Snapshot(), team, mailbox.Options{Run: "run-1", Edges: []handoff.Edge{{From: "analyst", To: "writer"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	waiting, _ := again.Unread("writer")
	fmt.Println(waiting)
	// Output:
	// [message "message/2" from "analyst" to "writer", internal]
}
