package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/pricing"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// modelsOf returns the names of the models that an agent calls: the result of its method
// Models() []string, which an [agent.LLM] has, or nil.
func modelsOf(a agent.Agent) []string {
	if named, ok := a.(interface{ Models() []string }); ok {
		return named.Models()
	}
	return nil
}

// checkPrices checks the prices of a team, and that the models of agents with a
// cost budget have one.
func (t *Roster) checkPrices() (found task.Problems) {
	for _, model := range slices.Sorted(maps.Keys(t.Config.Prices)) {
		if !pricing.IsValid(t.Config.Prices[model]) {
			found = append(found, task.Problem{
				Pointer: naming.Pointer("prices", model), Subject: fmt.Sprintf("prices: %q", model), Message: "a price is not between 0 and 1000000",
				Hint: "write US dollars per million tokens", Err: task.ErrInvalid,
			})
		}
	}
	check := func(at, subject string, tokens int, cost llm.Money) {
		if tokens < 0 {
			found = append(found, task.Problem{Pointer: at + "/maxTokenBudget", Subject: subject, Message: "maxTokenBudget must not be negative", Hint: "leave it out for no bound", Err: task.ErrInvalid})
		}
		if cost < 0 {
			found = append(found, task.Problem{Pointer: at + "/maxCostBudget", Subject: subject, Message: "maxCostBudget must not be negative", Hint: "leave it out for no bound", Err: task.ErrInvalid})
		}
	}
	for i := range t.Config.Agents {
		m := &t.Config.Agents[i]
		check(fmt.Sprintf("/agents/%d", i), fmt.Sprintf("agent %q", m.Name), m.MaxTokenBudget, m.MaxCostBudget)
		if m.MaxCostBudget > 0 {
			found = append(found, t.unpriced(i)...)
		}
	}
	if c := t.Config.Coordinator; c != nil {
		check("/coordinator", handoff.Coordinator, c.MaxTokenBudget, c.MaxCostBudget)
		if c.MaxCostBudget > 0 {
			found = append(found, t.unpriced(-1)...)
		}
	}
	return found
}

// unpriced returns a problem for each model without a price that a member may call. Member
// -1 is the coordinator. An agent without an endpoint and without a model counts as one
// that calls none.
func (t *Roster) unpriced(member int) (found task.Problems) {
	at, subject := "/coordinator", handoff.Coordinator
	var m *Member
	if member >= 0 {
		m = &t.Config.Agents[member]
		at, subject = fmt.Sprintf("/agents/%d", member), fmt.Sprintf("agent %q", m.Name)
	} else {
		m = t.Config.Coordinator.member()
	}
	if m.Agent == nil {
		return nil // reported already
	}
	models, where := modelsOf(m.Agent), at+"/model"
	if len(models) == 0 && (m.Model != "" || len(m.baseURLs()) > 0) {
		models = []string{""}
	}
	for i, model := range models {
		if model = cmp.Or(model, m.Model); i > 0 {
			where = fmt.Sprintf("%s/fallback/%d/model", at, i-1)
		}
		if _, priced := t.Config.Prices[model]; priced && model != "" {
			continue
		}
		p := task.Problem{Pointer: where, Subject: subject, Err: ErrNoPrice}
		if model == "" {
			p.Message, p.Hint = "its model has no name, and maxCostBudget needs the price of each model", "name the model, and add the name to prices"
		} else {
			p.Message = fmt.Sprintf("the model %q has no price, and maxCostBudget needs the price of each model", model)
			p.Hint = fmt.Sprintf("add %s: {input: …, output: …} to prices, in US dollars per million tokens; 0 for a free model", model)
		}
		found = append(found, p)
	}
	return found
}

// checkPriced reports, once each, the models without a price under a cost budget of the
// run, and those that earlier processes of the run called.
func (c *checker) checkPriced() {
	t, found := c.team, task.Problems(nil)
	if c.options.MaxCostBudget > 0 {
		for i := range t.Config.Agents {
			found = append(found, t.unpriced(i)...)
		}
		if t.Config.Coordinator != nil && c.options.Answer != nil {
			found = append(found, t.unpriced(-1)...)
		}
	}
	for _, prior := range c.options.PriorCalls {
		_, priced := t.Config.Prices[prior.Model]
		if priced || prior.Cost > 0 || max(prior.Usage.InputTokens, prior.Usage.OutputTokens) <= 0 || c.options.MaxCostBudget == 0 && t.costBudget(prior.Agent) == 0 {
			continue
		}
		found = append(found, task.Problem{
			Pointer: "/prices", Message: fmt.Sprintf("the run already called the model %q, which has no price; a cost budget counts those calls too", prior.Model),
			Hint: "add the model to prices", Err: ErrNoPrice,
		})
	}
	said := map[string]bool{}
	for _, p := range found {
		if !said[p.Message] {
			said[p.Message] = true
			c.add(p)
		}
	}
}

// costBudget returns the cost budget of an agent; zero means that it has none.
func (t *Roster) costBudget(agent string) llm.Money {
	if m := t.Find(agent); m.Name == agent {
		return m.MaxCostBudget
	}
	return 0
}

// BoundsCost reports whether an agent, or the coordinator, has a cost budget.
func (t *Roster) BoundsCost() bool {
	return t.costBudget(handoff.Coordinator) > 0 || slices.ContainsFunc(t.Config.Agents, func(m Member) bool { return m.MaxCostBudget > 0 })
}
