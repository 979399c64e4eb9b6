package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// crowd is a policy of 1,000 rules for 100 agents: exact ones, some for one
// side, some for everybody.
func crowd(t testing.TB) *gate.Rulebook {
	name := func(i int) string { return fmt.Sprintf("agent-%d", i%100) }
	var p handoff.Policy
	var parties []gate.Party
	for i := range 100 {
		parties = append(parties, gate.Party{Name: name(i)})
	}
	for i := range 700 {
		p.Rules = append(p.Rules, handoff.PairRule{From: name(i), To: name(i + 1 + i/100), Allow: []task.Path{"/facts/*", "/score"}, Block: []task.Path{"notes"}})
	}
	for i := range 200 {
		r := handoff.PairRule{From: name(i), To: handoff.Anyone, Allow: []task.Path{"/facts/**", "/score", "/risk"}, Ceiling: new(label.Confidential)}
		if i%2 == 0 {
			r.From, r.To = handoff.Anyone, name(i)
		}
		p.Rules = append(p.Rules, r)
	}
	for i := range 100 {
		r := handoff.PairRule{From: handoff.Anyone, To: handoff.Anyone, Block: []task.Path{task.Path(fmt.Sprintf("private-%d", i))}}
		if i == 0 {
			r.Redact.Kinds = []redact.Kind{"ip"}
		}
		p.Rules = append(p.Rules, r)
	}
	require.Len(t, p.Rules, 1000)
	b, err := gate.Compile(&p, parties)
	require.NoError(t, err)
	return b
}

// BenchmarkBetween measures one decision without the value: the terms of a pair
// among 1,000 rules, and what they say of a label.
func BenchmarkBetween(b *testing.B) {
	book := crowd(b)
	for _, pair := range []struct{ name, from, to string }{
		{"exact", "agent-10", "agent-11"}, {"one-sided", "agent-11", "agent-90"}, {"everybody", "user", "agent-91"},
	} {
		b.Run(pair.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				terms := book.Between(pair.from, pair.to)
				x := terms.Admit(label.Confidential, label.Confidential, pair.to)
				if x.Withheld() {
					b.Fatal(x.Detail)
				}
			}
		})
	}
}

// BenchmarkBetweenFirst is what the terms of a pair cost when they are first
// asked for: all 10,000 pairs of a new book.
func BenchmarkBetweenFirst(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		book := crowd(b)
		b.StartTimer()
		for i := range 100 {
			for k := range 100 {
				book.Between(fmt.Sprintf("agent-%d", i), fmt.Sprintf("agent-%d", k))
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1e4, "µs/pair")
}

// BenchmarkCompile reads the policy of 1,000 rules.
func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		crowd(b)
	}
}

// BenchmarkDecide measures the gate for a value: a text that is delivered whole, a
// text that is JSON and a structured value that is delivered in part.
func BenchmarkDecide(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10} {
		var items []string
		for i, n := 0, 20; n < size-150; i++ {
			one := fmt.Sprintf(`{"id":%d,"name":"part number %d","note":"nothing to see in this one","score":0.5}`, i, i)
			items, n = append(items, one), n+len(one)+1
		}
		raw := `{"facts":[` + strings.Join(items, ",") + `]}`
		words := strings.Repeat("The quick brown fox jumps over the lazy dog. ", size/45)
		scoped := exactly(handoff.PairRule{Allow: []task.Path{"/facts/*/id", "/facts/*/name", "/facts/*/score"}, Block: []task.Path{"note"}})
		for _, with := range []struct {
			name    string
			policy  handoff.Policy
			payload envelope.Payload
		}{
			{"text", exactly(handoff.PairRule{Allow: []task.Path{""}}), envelope.Text(words)},
			{"JSON text", scoped, envelope.Text(raw)},
			{"structured", scoped, structured(b, raw)},
		} {
			b.Run(fmt.Sprintf("%dKiB/%s", size>>10, with.name), func(b *testing.B) {
				compartment, o := under(b, with.policy), offer(b, with.payload)
				b.SetBytes(int64(with.payload.Size()))
				b.ReportAllocs()
				for b.Loop() {
					r, err := compartment.Decide(b.Context(), o, noon)
					if err != nil || !r.IsDelivered() {
						b.Fatal(r.Detail, err)
					}
				}
			})
		}
	}
}
