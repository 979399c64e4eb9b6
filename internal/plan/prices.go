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
func (t *Roster) checkPrices(found *task.Problems) {
	for _, model := range slices.Sorted(maps.Keys(t.Config.Prices)) {
		if !pricing.IsValid(t.Config.Prices[model]) {
			subject{found, naming.Pointer("prices", model), fmt.Sprintf("prices: %q", model)}.report("a price is not between 0 and 1000000", "write US dollars per million tokens", task.ErrInvalid)
		}
	}
	for i := range t.Config.Agents {
		m := &t.Config.Agents[i]
		t.checkBudgets(m, subject{found, naming.Pointer("agents", i), fmt.Sprintf("agent %q", m.Name)})
	}
	if c := t.Config.Coordinator; c != nil {
		t.checkBudgets(c.member(), subject{found, "/coordinator", handoff.Coordinator})
	}
}

// checkBudgets checks the budgets of a member, and that its models have a price if it has a
// cost budget.
func (t *Roster) checkBudgets(m *Member, about subject) {
	about.checkBudget(m.Budget)
	if m.MaxCostBudget > 0 {
		t.checkPriced(m, about)
	}
}

// checkPriced reports the models without a price that a member may call. An agent without
// an endpoint and without a model counts as one that calls none.
func (t *Roster) checkPriced(m *Member, about subject) {
	if m.Agent == nil {
		return // reported already
	}
	models := modelsOf(m.Agent)
	if len(models) == 0 && (m.Model != "" || len(m.baseURLs()) > 0) {
		models = []string{""}
	}
	for i, model := range models {
		at := about.at("model")
		if model = cmp.Or(model, m.Model); i > 0 {
			at = about.at("fallback", i-1, "model")
		}
		if _, priced := t.Config.Prices[model]; priced && model != "" {
			continue
		}
		if model == "" {
			at.report("its model has no name, and maxCostBudget needs the price of each model", "name the model, and add the name to prices", ErrNoPrice)
			continue
		}
		at.report(fmt.Sprintf("the model %q has no price, and maxCostBudget needs the price of each model", model),
			fmt.Sprintf("add %s: {input: …, output: …} to prices, in US dollars per million tokens; 0 for a free model", model), ErrNoPrice)
	}
}

// checkPriced reports, once each, the models without a price under a cost budget of the
// run, and those that earlier processes of the run called.
func (c *checker) checkPriced() {
	t, found := c.team, task.Problems(nil)
	if c.options.MaxCostBudget > 0 {
		for i := range t.Config.Agents {
			m := &t.Config.Agents[i]
			t.checkPriced(m, subject{&found, naming.Pointer("agents", i), fmt.Sprintf("agent %q", m.Name)})
		}
		if t.Config.Coordinator != nil && c.options.Answer != nil {
			t.checkPriced(t.Config.Coordinator.member(), subject{&found, "/coordinator", handoff.Coordinator})
		}
	}
	for _, prior := range PriorCalls(c.options.Past) {
		_, priced := t.Config.Prices[prior.Model]
		if priced || prior.Cost > 0 || max(prior.Usage.InputTokens, prior.Usage.OutputTokens) <= 0 || c.options.MaxCostBudget == 0 && t.costBudget(prior.Agent) == 0 {
			continue
		}
		subject{found: &found, pointer: "/prices"}.report(fmt.Sprintf("the run already called the model %q, which has no price; a cost budget counts those calls too", prior.Model), "add the model to prices", ErrNoPrice)
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
