package mailbox_test

import (
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/mailbox"
)

// BenchmarkSendAndTake sends a message and takes it, among waiting ones.
func BenchmarkSendAndTake(b *testing.B) {
	for _, bm := range []struct {
		name           string
		waiting, bytes int
	}{{"1 KiB", 0, 1 << 10}, {"1 MiB", 0, 1 << 20}, {"1 KiB, 900 wait", 900, 1 << 10}} {
		b.Run(bm.name, func(b *testing.B) {
			bus := newBus(b, mailbox.Options{})
			for range bm.waiting {
				send(b, bus, user, "writer", "x")
			}
			text := strings.Repeat("x", bm.bytes)
			b.ReportAllocs()
			for b.Loop() {
				id := send(b, bus, "analyst", "writer", text)
				if len(take(b, bus, "writer", func(m mailbox.Message) bool { return m.ID == id })) != 1 {
					b.Fatal("not taken")
				}
			}
		})
	}
}
