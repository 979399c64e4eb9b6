package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// PlanApprovalTitle is the title of the prompt that asks whether the tasks of a plan may run.
const PlanApprovalTitle = "Approve the plan"

// ApprovalTitle returns the title of the prompt that asks whether a tool may be called, or whether an
// entry of the policy may lower a value.
func ApprovalTitle(name string) string { return "Approve " + name }

// checkApprovers reports people who have to approve something and cannot. A person who has to approve
// calls of several tools is reported once.
func (c *Config) checkApprovers(found *task.Problems) {
	var people []string
	tools, first := map[string][]string{}, map[string]string{} // by the person
	for i := range c.Agents {
		for k, f := range c.Agents[i].Tools {
			if f == nil || f.Approve == "" || slices.Contains(tools[f.Approve], f.Name) {
				continue
			}
			if tools[f.Approve] == nil {
				people = append(people, f.Approve)
				first[f.Approve] = naming.Pointer("agents", i, "tools", k, "approve")
			}
			tools[f.Approve] = append(tools[f.Approve], f.Name)
		}
	}
	for _, person := range people {
		c.checkApprover(subject{found, first[person], toolsText(tools[person])}, person)
	}
	if k := c.Coordinator; k != nil && k.Approve != "" {
		c.checkApprover(subject{found, "/coordinator/approve", "coordinator"}, k.Approve)
	}
	*found = append(*found, c.UnconfinedPrograms(false)...)
	if c.Policy == nil {
		return
	}
	for i := range c.Policy.Declassify {
		d := &c.Policy.Declassify[i]
		if d.Approve == "" {
			continue
		}
		about := subject{found, naming.Pointer("policy", "declassify", i, "approve"), fmt.Sprintf("%q", d.Name)}
		c.checkApprover(about, d.Approve)
		switch {
		case d.To == d.Approve:
			about.report(fmt.Sprintf("%q cannot approve what %q itself is to get", d.Approve, d.To), "name another person", task.ErrInvalid)
		case !slices.ContainsFunc(c.Agents, func(m Member) bool { return m.Name == d.To }):
			about.report(fmt.Sprintf("approve works only if \"to\" is an agent; %q is not one", d.To), "name an agent in to, or remove approve; for a tool, write approve on the tool", task.ErrInvalid)
		}
	}
}

// UnconfinedPrograms returns a problem for each program of tools that is not confined and has no reason for
// that, if a person approves something in the team, and for each that is not confined if the run is strict. It
// calls no agent, so that it can be called before such a program is started.
func (c *Config) UnconfinedPrograms(strict bool) (found task.Problems) {
	person := c.firstApprover()
	seen := map[string]bool{}
	for i := range c.Agents {
		for k, f := range c.Agents[i].Tools {
			if f == nil || f.Program == nil || f.Program.Confined || seen[f.Program.Name] {
				continue
			}
			of := subject{&found, naming.Pointer("agents", i, "tools", k, "mcp"), f.Program.Name}
			switch {
			case strict:
				of.report("it is not confined, and this run allows only confined programs", "write confine: true", ErrUnconfined)
			case person == "" || f.Program.Reason != "":
				continue
			default:
				of.report(fmt.Sprintf("it is not confined, and such a program could answer in place of %q", person),
					`write confine: true, or confine: false with reason: "WHY", which plans show`, ErrUnconfined)
			}
			seen[f.Program.Name] = true
		}
	}
	return found
}

// firstApprover returns the name of a person who has to approve something; empty if nobody has.
func (c *Config) firstApprover() string {
	for i := range c.Agents {
		for _, f := range c.Agents[i].Tools {
			if f != nil && f.Approve != "" {
				return f.Approve
			}
		}
	}
	if k := c.Coordinator; k != nil && k.Approve != "" {
		return k.Approve
	}
	if c.Policy == nil {
		return ""
	}
	i := slices.IndexFunc(c.Policy.Declassify, func(d handoff.Declassifier) bool { return d.Approve != "" })
	if i < 0 {
		return ""
	}
	return c.Policy.Declassify[i].Approve
}

// toolsText names tools.
func toolsText(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return plural(len(names), "tool") + " " + strings.Join(quoted, ", ")
}

// checkApprover reports a person who cannot approve what a subject needs.
func (c *Config) checkApprover(of subject, person string) {
	var people []string
	for i := range c.Agents {
		m := &c.Agents[i]
		if m.IsPerson() {
			people = append(people, m.Name)
		}
		if !strings.EqualFold(m.Name, person) {
			continue
		}
		switch who := c.Unconfined(); {
		case !m.IsPerson():
			of.report(fmt.Sprintf("agent %q cannot approve anything: it is not a person", m.Name), "name a member whose backend is a person", task.ErrInvalid)
		case m.Name != person:
			of.report(fmt.Sprintf("the approver %q is written %q in the roster", person, m.Name), "", task.ErrInvalid)
		case who != "":
			of.report(fmt.Sprintf("agent %q has commands that are not confined, and such a command could answer in place of %q", who, m.Name), unconfinedHint()+", or remove approve", ErrUnconfined)
		}
		return
	}
	hint := "add an agent whose backend is a person"
	if len(people) > 0 {
		hint = naming.Suggest(person, people)
	}
	of.report(fmt.Sprintf("unknown approver %q", person), hint, task.ErrUnknown)
}

// unseen says why a person can never approve something that an agent makes, with a label of at least
// level: the policy or the label withholds it from the person. That names what has the label, and what
// names what the person has to approve. A mode of the policy counts if the value has parts.
func unseen(t *Roster, from, person string, level label.Classification, that, what string, parts bool) (detail, hint string, rule handoff.Rule) {
	m, _ := t.Index(person)
	clearance := t.Capabilities[m].Clearance()
	terms := t.Terms(from, person)
	x := terms.Admit(level, clearance, person)
	switch {
	case parts && terms.Mode() == handoff.Minimal:
		return fmt.Sprintf("%q has to approve %s, and a rule of the policy delivers it nothing of agent %q", person, what, from), "change the rule, or name another approver", gate.RuleTools
	case x.Withheld() && x.Rule != gate.RuleClearance:
		return fmt.Sprintf("%q has to approve %s, and may not see it: %s", person, what, x.Detail), "change the rule, or name another approver", x.Rule
	case x.Withheld() || x.Lowers != nil || x.After > clearance:
		return fmt.Sprintf("%s is at least %v, and %q, who has to approve %s, accepts at most %v", that, level, person, what, clearance),
			fmt.Sprintf("raise accepts of %q to %v, or name another approver", person, level), cmp.Or(x.Rule, gate.RuleClearance)
	}
	return "", "", ""
}

// adviseUnshown warns that a person can only refuse what an agent makes, with a label of at least level:
// the question shows what the user may see, and nobody approves what is not shown. It reports whether that is so.
func adviseUnshown(c *checker, at subject, person, what, from string, source gate.Source, level label.Classification) bool {
	why, hint := unshownBy(c, from, source, level)
	if why == "" {
		return false
	}
	message := fmt.Sprintf("%q can only refuse %s: the question shows what the user of the run may see, and %s", person, what, why)
	if !slices.ContainsFunc(c.advice, func(p task.Problem) bool { return p.Message == message }) {
		c.advise(at, message, hint)
	}
	return true
}

// unshownBy says why a question does not show all of what an agent makes, with a label of at least level; empty
// if it can.
func unshownBy(c *checker, from string, source gate.Source, level label.Classification) (why, hint string) {
	accepts, terms := c.options.RecordClearance(), c.team.Terms(from, handoff.User)
	switch {
	case level > accepts:
		why = fmt.Sprintf("it is at least %v, and the user may see %v", level, accepts)
		hint = "remove approve, or keep from it what the user may not see"
	case c.team.Rules == nil || from == handoff.User || PassesWhole(terms, from, source, level, accepts):
		return "", ""
	default:
		why = fmt.Sprintf("the rules from %q to %q withhold or redact a part of it", from, handoff.User)
		if cited := terms.Cited(); len(cited) > 0 && cited[0].Line != "" {
			why = fmt.Sprintf("rule %s (%s) withholds or redacts a part of it", cited[0].Rule, cited[0].Line)
		}
		hint = "change the rules so that the user gets all of it, or remove approve"
	}
	return why, hint
}

// CheckPlanApprover reports that the person who has to approve the plans of the coordinator can see
// none of them: they have at least this label.
func CheckPlanApprover(t *Roster, level label.Classification) (found task.Problems) {
	k := t.Config.Coordinator
	if k == nil || k.Approve == "" {
		return nil
	}
	if detail, hint, rule := unseen(t, handoff.Coordinator, k.Approve, level, "the plan", "it", false); detail != "" {
		subject{&found, "/coordinator/approve", "coordinator"}.report(detail, hint, &gate.Refusal{Rule: rule, Reason: detail})
	}
	return found
}

// ApprovesLoweringFor reports whether a person has to approve what a declassifier delivers to an agent.
func (c *Config) ApprovesLoweringFor(agent string) bool {
	return c.Policy != nil && slices.ContainsFunc(c.Policy.Declassify, func(d handoff.Declassifier) bool { return d.Approve != "" && d.To == agent })
}
