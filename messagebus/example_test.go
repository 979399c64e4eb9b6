package messagebus_test

import (
	"fmt"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/messagebus"
)

func Example() {
	bus, err := messagebus.New([]string{"analyst", "scorer", "writer"}, messagebus.Options{Edges: []handoff.Edge{{From: "analyst", To: "writer"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	secret := envelope.Header{Classification: label.Confidential}
	first, _ := bus.Send("analyst", "writer", "The claim is for 1,200 euros.", secret)
	_, _ = bus.Broadcast("user", "Be brief.", envelope.Header{})
	_, err = bus.Send("analyst", "scoer", "?", envelope.Header{})
	fmt.Println(err)

	_ = bus.MarkRead("writer", first)
	unread, _ := bus.Unread("writer")
	all, _ := bus.All("writer")
	fmt.Println(len(unread), len(all))
	talk, _ := bus.Conversation("analyst", "writer")
	for _, m := range talk {
		fmt.Println(m.From, "to", m.To+":", m.Envelope)
	}
	// Output:
	// send: unknown agent "scoer": did you mean "scorer"?
	// 1 2
	// analyst to writer: envelope "message/1" from "analyst", confidential
}

func ExampleBus_Subscribe() {
	bus, err := messagebus.New([]string{"analyst", "writer"}, messagebus.Options{Edges: []handoff.Edge{{From: "analyst", To: "writer"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	cancel, err := bus.Subscribe("writer", func(m messagebus.Message) { fmt.Println("from", m.From) })
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = bus.Send("analyst", "writer", "Done.", envelope.Header{})
	cancel()
	_, _ = bus.Send("analyst", "writer", "Not received.", envelope.Header{})
	// Output: from analyst
}

func ExampleFromSnapshot() {
	team := []string{"analyst", "writer"}
	bus, err := messagebus.New(team, messagebus.Options{Edges: []handoff.Edge{{From: "analyst", To: "writer"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	first, _ := bus.Send("analyst", "writer", "One.", envelope.Header{})
	_, _ = bus.Send("analyst", "writer", "Two.", envelope.Header{})
	_ = bus.MarkRead("writer", first)

	snapshot, _ := bus.Snapshot()
	again, err := messagebus.FromSnapshot(snapshot, team, messagebus.Options{Edges: []handoff.Edge{{From: "analyst", To: "writer"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	unread, _ := again.Unread("writer")
	fmt.Println(len(unread), unread[0].Envelope.ID())
	// Output: 1 message/2
}
