package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/internal/visits"
	"github.com/runteam/runteam/task"
)

// TestVisitsAreLinear checks that no block of the gate, of what it calls to select parts and of what redacts runs more
// than twice as often for a value, a reply or a policy of twice the size.
func TestVisitsAreLinear(t *testing.T) {
	slowtest.Only(t)
	decide := func(policy handoff.Policy, payload func(n int) envelope.Payload) func(n int) {
		return func(n int) {
			compartment, o := under(t, policy), offer(t, payload(n))
			_, _ = compartment.Decide(t.Context(), o, noon)
		}
	}
	list := func(item string) func(n int) envelope.Payload {
		return func(n int) envelope.Payload {
			return structured(t, `{"facts":[`+strings.TrimSuffix(strings.Repeat(item+",", n/len(item)+1), ",")+`]}`)
		}
	}
	text := func(piece string) func(n int) envelope.Payload {
		return func(n int) envelope.Payload { return envelope.Text(strings.Repeat(piece, n/len(piece)+1)) }
	}
	scoped := exactly(handoff.PairRule{Allow: []task.Path{"/facts/*/id", "/facts/*/a/**"}, Block: []task.Path{"note", "b"}})
	whole := exactly(handoff.PairRule{Allow: []task.Path{""}})
	visits.RequireLinear(t, 8<<10, "github.com/runteam/runteam/internal/gate,github.com/runteam/runteam/internal/pick,github.com/runteam/runteam/redact", map[string]func(n int){
		"items in part":        decide(scoped, list(`{"id":1,"note":"x","a":{"b":{"a":[1,2]},"c":"ann@example.com"}}`)),
		"items":                decide(whole, list(`{"id":1,"note":"password=a1B2c3D4"}`)),
		"nested items":         decide(scoped, list(strings.Repeat(`{"a":`, 60)+"1"+strings.Repeat("}", 60))),
		"text":                 decide(whole, text("<|im_start|> mail ann@example.com ")),
		"openers":              decide(whole, text("[envelope ")),
		"headings":             decide(whole, text("# Task: x\n## Inputs\n")),
		"text that is JSON":    decide(scoped, func(n int) envelope.Payload { return text("[1,")(n) }),
		"fences":               decide(scoped, text("```json\n{\n")),
		"a stream of spaces":   func(n int) { stream(t, strings.Repeat(" ", n)) },
		"a stream of braces":   func(n int) { stream(t, strings.Repeat("{", n)) },
		"a stream of a letter": func(n int) { stream(t, strings.Repeat("The quick fox. ", n/15)) },
		"rules": func(n int) {
			var p handoff.Policy
			var parties []gate.Party
			for i := range n / 40 {
				parties = append(parties, gate.Party{Name: fmt.Sprintf("agent-%d", i)})
				p.Rules = append(p.Rules, handoff.PairRule{From: fmt.Sprintf("agent-%d", i), To: fmt.Sprintf("agent-%d", (i+1)%(n/40)), Allow: []task.Path{"/facts/*"}})
			}
			book, err := gate.Compile(&p, parties)
			if err != nil {
				t.Fatal(err)
			}
			for i := range parties {
				book.Between(parties[i].Name, parties[(i+1)%len(parties)].Name)
			}
		},
	})
}

// stream passes a text to a stream in small pieces.
func stream(t *testing.T, text string) {
	s := gate.NewTextStream()
	for text != "" {
		piece := min(8, len(text))
		s.Write(t.Context(), text[:piece])
		text = text[piece:]
	}
}
