package teammemory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/task"
)

// The executor holds the writer; whoever may see all of the memory a reader.
func Example() {
	ctx, now := context.Background(), time.Now()
	memory := teammemory.New(nil)
	writer, reader := memory.Writer(), memory.Reader()

	score := task.ID("t1")
	result, _ := envelope.New(envelope.Header{ID: "e1", Producer: "fraud", Task: score, CreatedAt: now}, envelope.Text("low"))
	_ = writer.WriteResult(ctx, "fraud", result, 0)
	note, _ := envelope.New(envelope.Header{ID: "e2", Producer: "intake", CreatedAt: now}, envelope.Text("two claims are alike"))
	_ = writer.Write(ctx, "intake", "seen", note, 3)
	fmt.Println(writer.Write(ctx, "fraud", "seen", note, 3))

	entries, _ := reader.Entries(ctx, teammemory.Only(score))
	for _, e := range entries {
		fmt.Println(e.FullKey(), "at turn", e.Turn)
	}
	// Output:
	// write memory "fraud/seen": invalid entry: written in another's name: the envelope is from "intake"
	// fraud/task:t1:result at turn 1
}

func ExampleReader_Summary() {
	ctx, now := context.Background(), time.Now()
	memory := teammemory.New(nil)
	for i, said := range []struct{ agent, key, text string }{
		{"intake", "claim", "a broken window"}, {"fraud", "score", "low"}, {"intake", "iban", "DE00 …"},
	} {
		e, _ := envelope.New(envelope.Header{ID: envelope.ID(fmt.Sprint(i)), Producer: said.agent, CreatedAt: now}, envelope.Text(said.text))
		_ = memory.Writer().Write(ctx, said.agent, said.key, e, 0)
	}
	gate := func(e teammemory.Entry) (string, bool, error) { // stands for the real one
		return fmt.Sprint(e.Envelope), e.Key != "iban", nil
	}
	text, err := memory.Reader().Summary(ctx, teammemory.Everything(), gate)
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

func ExampleFilter() {
	var wanted []task.ID // nothing was asked for: that is not everything
	ctx, memory := context.Background(), teammemory.New(nil)
	e, _ := envelope.New(envelope.Header{ID: "e1", Producer: "ana", Task: "t1", CreatedAt: time.Now()}, envelope.Text("x"))
	_ = memory.Writer().WriteResult(ctx, "ana", e, 0)
	for _, f := range []teammemory.Filter{nil, teammemory.Only(wanted...), teammemory.Only("t1"), teammemory.Everything()} {
		entries, _ := memory.Reader().Entries(ctx, f)
		fmt.Print(len(entries), " ")
	}
	// Output: 0 0 1 1
}
