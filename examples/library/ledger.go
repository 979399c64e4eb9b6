package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/prompt"
)

// addUp is the agent in Go. All that it knows is in the prompt, like for any other.
func addUp(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
	text, ok := p.Structured("Read the invoice")
	if !ok {
		return agent.Reply{}, errors.New("there is no invoice to add up")
	}
	var invoice struct {
		Items      []struct{ Quantity, Cents int }
		TotalCents int
	}
	if err := json.Unmarshal([]byte(text), &invoice); err != nil {
		return agent.Reply{}, err
	}
	sum := 0
	for _, item := range invoice.Items {
		sum += item.Quantity * item.Cents
	}
	word, off := "more", invoice.TotalCents-sum
	if off < 0 {
		word, off = "less", -off
	}
	return agent.Reply{Text: fmt.Sprintf("%d items come to %s, the invoice asks for %s, which is %s %s",
		len(invoice.Items), euro(sum), euro(invoice.TotalCents), euro(off), word)}, nil
}

func euro(cents int) string { return fmt.Sprintf("EUR %d.%02d", cents/100, cents%100) }
