package sharedmem_test

import (
	"context"
	"fmt"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/sharedmem"
	"github.com/runteam/runteam/task"
)

func Example() {
	ctx, now := context.Background(), time.Now()
	memory := sharedmem.New(nil)

	score := task.ID("t1")
	result, _ := envelope.New(envelope.Header{ID: "e1", Producer: "fraud", Task: score, CreatedAt: now}, envelope.Text("low"))
	_ = memory.WriteResult(ctx, "fraud", result, 0)
	note, _ := envelope.New(envelope.Header{ID: "e2", Producer: "intake", CreatedAt: now}, envelope.Text("two claims are alike"))
	_ = memory.Write(ctx, "intake", "seen", note, 3)
	fmt.Println(memory.Write(ctx, "fraud", "seen", note, 3))

	for _, f := range []sharedmem.Filter{sharedmem.Everything(), sharedmem.Only(score), sharedmem.Only()} {
		entries, _ := memory.Entries(ctx, f)
		for _, e := range entries {
			fmt.Println(e.FullKey(), "at turn", e.Turn)
		}
		fmt.Println(len(entries))
	}
	// Output:
	// write memory "fraud/seen": invalid entry: written in another's name: the envelope is from "intake"
	// fraud/task:t1:result at turn 1
	// intake/seen at turn 1
	// 2
	// fraud/task:t1:result at turn 1
	// 1
	// 0
}

func ExampleMemory_Summary() {
	ctx, now := context.Background(), time.Now()
	memory := sharedmem.New(nil)
	for i, said := range []struct{ agent, key, text string }{
		{"intake", "claim", "a broken window"}, {"fraud", "score", "low"}, {"intake", "iban", "DE00 …"},
	} {
		e, _ := envelope.New(envelope.Header{ID: envelope.ID(fmt.Sprint(i)), Producer: said.agent, CreatedAt: now}, envelope.Text(said.text))
		_ = memory.Write(ctx, said.agent, said.key, e, 0)
	}
	show := func(e sharedmem.Entry) (string, bool, error) { return fmt.Sprint(e.Envelope), e.Key != "iban", nil }
	text, err := memory.Summary(ctx, sharedmem.Everything(), show)
	fmt.Println(text, err)
	// Output:
	// ## Shared Team Memory
	//
	// ### intake
	// - claim: envelope "0" from "intake", internal
	//
	// ### fraud
	// - score: envelope "1" from "fraud", internal <nil>
}

func ExampleStore() {
	ctx, store := context.Background(), sharedmem.NewMapStore()
	note, _ := envelope.New(envelope.Header{ID: "e1", Producer: "intake", CreatedAt: time.Now()}, envelope.Text("x"))
	_ = sharedmem.New(store).Write(ctx, "intake", "seen", note, 0)

	next := sharedmem.New(store) // of a later run
	entries, err := next.Entries(ctx, sharedmem.Everything())
	fmt.Println(len(entries), err)

	record, _ := entries[0].Record() // what a store on disk keeps
	again, err := sharedmem.ReadRecord(record)
	fmt.Println(again.FullKey(), err)
	// Output:
	// 1 <nil>
	// intake/seen <nil>
}

func ExampleFromSnapshot() {
	ctx, memory := context.Background(), sharedmem.New(nil)
	note, _ := envelope.New(envelope.Header{ID: "e1", Producer: "intake", CreatedAt: time.Now()}, envelope.Text("x"))
	_ = memory.Write(ctx, "intake", "seen", note, 0)
	snapshot, _ := memory.Snapshot(ctx)
	again, err := sharedmem.FromSnapshot(ctx, snapshot, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	entries, _ := again.Entries(ctx, sharedmem.Everything())
	fmt.Println(len(entries))
	// Output: 1
}
