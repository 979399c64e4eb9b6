package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/synth"
	"github.com/runteam/runteam/task"
)

// A ledSetting is a team with a coordinator that plans the tasks of a goal.
type ledSetting struct {
	agents      []engine.Member // without what does the work
	inputs      []settingInput
	tasks       []ledTask
	policy      handoff.Policy
	user        label.Classification
	coordinator label.Classification
	most        int // bytes of the prompts of the coordinator, which has the results in parts then
	way         ledWay
}

// A ledTask is a task as the coordinator plans it.
type ledTask struct {
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Assignee    string   `json:"assignee"`
	DependsOn   []string `json:"dependsOn,omitempty"`
	Uses        []string `json:"uses,omitempty"`
	MemoryScope string   `json:"memoryScope,omitempty"`
}

// A ledWay is the way from a goal to a result.
type ledWay int

const (
	atOnce  ledWay = iota // the goal is planned and run
	before                // it is planned first, and the plan is run
	saved                 // the tasks of the plan are run later, perhaps with other inputs
	inTurns               // it is a turn of a session, and another goal without inputs is the next one
)

// laterTurn begins the steps of the second turn of a session.
const laterTurn = "later: "

// ledGoal is a goal that is no single step.
const ledGoal = "Find what the inputs have in common, weigh it, and then write a report about it."

// ledGrants is what the coordinator may grant.
var ledGrants = synth.Grants{Inputs: true, Memory: true}

func drawLed(t *rapid.T) *ledSetting {
	s := &ledSetting{user: rapid.SampledFrom(classes[1:]).Draw(t, "user"), coordinator: rapid.SampledFrom(classes[1:]).Draw(t, "coordinator")}
	s.way = rapid.SampledFrom([]ledWay{atOnce, before, saved, inTurns}).Draw(t, "way")
	for i := range rapid.IntRange(2, 4).Draw(t, "agents") {
		s.agents = append(s.agents, engine.Member{Name: fmt.Sprintf("agent%d", i), SystemPrompt: "You are an agent.", Accepts: rapid.SampledFrom(classes[2:]).Draw(t, "accepts")})
	}
	name := func(what string) string { return rapid.SampledFrom(s.agents).Draw(t, what).Name }
	for i := range rapid.IntRange(1, 3).Draw(t, "inputs") {
		s.inputs = append(s.inputs, settingInput{fmt.Sprintf("input%d", i), rapid.SampledFrom([]label.Classification{label.Internal, label.Confidential, label.Confidential}).Draw(t, "level"), plain})
	}
	for i := range rapid.IntRange(2, 5).Draw(t, "tasks") {
		tk := ledTask{Title: fmt.Sprintf("Task %d", i), Description: "Do your part.", Assignee: name("assignee")}
		for up := range i {
			if rapid.IntRange(0, 2).Draw(t, "depends") == 0 {
				tk.DependsOn = append(tk.DependsOn, s.tasks[up].Title)
			}
		}
		for _, in := range s.inputs {
			if rapid.Bool().Draw(t, "uses") {
				tk.Uses = append(tk.Uses, in.name)
			}
		}
		if rapid.IntRange(0, 5).Draw(t, "memory") == 0 {
			tk.MemoryScope = string(task.ScopeAll)
		}
		s.tasks = append(s.tasks, tk)
	}
	if rapid.IntRange(0, 2).Draw(t, "parts") == 0 {
		s.most = 4 << 10
	}
	for _, m := range s.agents {
		for _, to := range append([]string{handoff.Coordinator, handoff.User}, s.agents[0].Name, s.agents[1].Name) {
			r := handoff.PairRule{From: m.Name, To: to}
			switch rapid.IntRange(0, 9).Draw(t, "rule") {
			case 0, 1:
				r.Mode = handoff.Minimal
			case 2:
				r.Mode, r.Ceiling = handoff.Full, new(label.Internal)
			default:
				continue
			}
			s.policy.Rules = append(s.policy.Rules, r)
		}
	}
	return s
}

// A ledTally counts what a number of such settings came to.
type ledTally struct {
	planned   [4]int // settings that can be run, by the way
	plans     int    // prompts for a plan, which no changed source reaches
	syntheses int    // prompts for an answer, or parts of one, which the changed source cannot reach
	agents    int    // prompts of agents, likewise
	answers   int    // results of runs, likewise
	later     int    // prompts of the next turn of a session, likewise
	laterHas  int    // of the next turn, those with a word of the turn before
	moved     int    // runs in which a changed source did change a prompt
	uneven    int    // runs in which tasks ended otherwise, or there were more parts of an answer
}

// What the coordinator may not read changes neither its prompts nor its answer, what an agent of its plan may not read
// changes none of its prompts, and what the caller may not read does not change the result. That holds also if the plan
// is made first, or saved and run later. In a session, what the coordinator may not read in a turn changes no prompt of
// the next one.
//
// Requirement: G54.
func TestNonInterferenceOfGoals(t *testing.T) {
	t.Parallel()
	seeds := 40 / slowtest.Every(4)
	if slowtest.Enabled() {
		seeds = slowtest.Cases(250, 1000)
	}
	var sum ledTally
	for seed := range seeds {
		s := rapid.Custom(drawLed).Example(seed + 1)
		rng := rand.New(rand.NewPCG(uint64(seed), 54))
		if wrong := s.interferes(t.Context(), &sum, rng.IntN); wrong != "" {
			t.Fatalf("setting %d: %s\n%+v", seed+1, wrong, s)
		}
	}
	t.Logf("%+v", sum)
	if !slowtest.RaceDetector {
		least := min(sum.planned[atOnce], sum.planned[before], sum.planned[saved], sum.planned[inTurns], sum.later, sum.laterHas, sum.plans, sum.syntheses, sum.agents, sum.answers, sum.moved)
		require.Greater(t, least, 2, "%+v", sum)
		require.Less(t, sum.uneven, sum.moved, "%+v", sum)
	}
}

// A ledStory is what came of such a run.
type ledStory struct {
	sights []sight // by session
	result *engine.Result
}

// A ledStage is the team of such a setting.
type ledStage struct {
	*ledSetting
	team   *engine.Team
	plan   *engine.Plan // that was saved
	mu     sync.Mutex   // guards sights
	sights []sight
	now    *variant
	later  bool // the second turn of a session
}

func (s *ledSetting) build() (*ledStage, error) {
	st := &ledStage{ledSetting: s}
	places := map[task.ID]int{}
	for i := range s.tasks {
		places[task.NewID(s.tasks[i].Title)] = i
	}
	cfg := engine.Config{Agents: slices.Clone(s.agents), Policy: &s.policy}
	for a := range cfg.Agents {
		cfg.Agents[a].Agent = engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			i := places[p.Receipt().Task]
			st.look(p, s.tasks[i].Title)
			if st.later {
				return agent.Reply{Text: "I say " + gist(p, "") + " " + echoes(p)}, nil
			}
			return st.now.reply(fmt.Sprintf("task/%d", i), plain, false, p)
		})
	}
	cfg.Coordinator = &engine.Coordinator{Accepts: &s.coordinator, MayGrant: ledGrants, Agent: engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		if strings.Contains(p.Text(), "\n## Goal\n") {
			st.look(p, "the plan")
			return agent.Reply{Text: encoded(s.planned(st.later))}, nil
		}
		st.look(p, answering)
		return agent.Reply{Text: "answered " + gist(p, "") + " " + echoes(p)}, nil
	})}
	cfg.Coordinator.Limits.MaxPromptBytes = s.most
	var err error
	st.team, err = engine.New(cfg)
	return st, err
}

// planned is the plan of a turn.
func (s *ledSetting) planned(later bool) []ledTask {
	list := slices.Clone(s.tasks)
	for i := range list {
		if later {
			list[i].Uses = nil
		}
	}
	return list
}

func (st *ledStage) look(p prompt.Prompt, step string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.later {
		step = laterTurn + step
	}
	r := p.Receipt()
	st.sights = append(st.sights, sight{agent: r.Agent, step: step, system: p.System(), text: p.Text(), receipt: r})
}

func (st *ledStage) options(w *variant) *engine.RunOptions {
	o := &engine.RunOptions{RunID: "run", MaxConcurrency: 1, UserAccepts: &st.user}
	for i, in := range st.inputs {
		o.Inputs = append(o.Inputs, engine.Input{Name: in.name, Classification: in.level, Text: w.text(fmt.Sprintf("input/%d", i), in.form)})
	}
	return o
}

// play runs a variant. The error says why it cannot be run.
func (st *ledStage) play(ctx context.Context, w *variant) (*ledStory, error) {
	st.now, st.sights, st.later = w, nil, false
	goal := engine.Goal{Text: ledGoal, Classification: label.Internal}
	if st.plan == nil || st.way == before {
		var err error
		if st.plan, err = st.team.PlanTeam(ctx, goal, st.options(w)); err != nil {
			return nil, err
		}
	}
	var res *engine.Result
	var err error
	switch o := st.options(w); st.way {
	case atOnce:
		st.sights = nil
		res, err = st.team.RunTeam(ctx, goal, o)
	case before:
		res, err = st.team.RunPlan(ctx, st.plan, o)
	case saved:
		st.sights = nil
		o.Answer = &goal
		res, err = st.team.RunTasks(ctx, st.plan.Specs(), o)
	case inTurns:
		res, err = st.converse(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(st.sights, func(a, b sight) int { return strings.Compare(a.receipt.Session, b.receipt.Session) })
	for i := range st.sights {
		st.sights[i].written = encoded(st.sights[i].receipt)
	}
	return &ledStory{st.sights, res}, nil
}

// converse runs the goal as the first turn of a session, and returns what comes of the second.
func (st *ledStage) converse(ctx context.Context, o *engine.RunOptions) (*engine.Result, error) {
	s, err := st.team.NewSession(engine.SessionOptions{ID: "run"})
	if err != nil {
		return nil, err
	}
	st.sights = nil
	if _, err = s.Send(ctx, ledGoal, label.Internal, o); err != nil {
		return nil, err
	}
	st.later = true
	next := *o
	next.RunID, next.Inputs = "next", nil
	return s.Send(ctx, "Now do all of it again, but look at it from the other side, and then report what changed.", label.Internal, &next)
}

// interferes runs a setting, and again with sources changed that choose picks. It says what is wrong, or nothing.
func (s *ledSetting) interferes(ctx context.Context, sum *ledTally, choose func(n int) int) string {
	st, err := s.build()
	if err != nil {
		return ""
	}
	w := newVariant(func(string) bool { return false })
	was, err := st.play(ctx, w)
	if err != nil {
		return ""
	}
	sum.planned[s.way]++
	table := st.plan.Flow()
	if wrong := s.known(table, w, was, sum); wrong != "" {
		return wrong
	}
	for range variations {
		n := choose(len(s.inputs) + len(s.tasks))
		place := fmt.Sprintf("input/%d", n)
		if n >= len(s.inputs) {
			place = fmt.Sprintf("task/%d", n-len(s.inputs))
		}
		changed, err := st.play(ctx, newVariant(func(p string) bool { return p == place || strings.HasPrefix(p, place+"/") }))
		if err != nil {
			return fmt.Sprintf("with %s changed it cannot be run: %v", place, err)
		}
		if wrong := s.compare(table, place, was, changed, sum); wrong != "" {
			return fmt.Sprintf("with %s changed: %s", place, wrong)
		}
	}
	return ""
}

// reaches reports whether a source reaches a reader by the table, itself or as what derives from it.
func (s *ledSetting) reaches(table *flow.Table, place, reader string) bool {
	kind, n := handoff.Input, 0
	if _, err := fmt.Sscanf(place, "input/%d", &n); err != nil {
		kind = handoff.Dependency
		_, _ = fmt.Sscanf(place, "task/%d", &n)
	}
	g := table.Graph()
	source := slices.IndexFunc(g.Sources, func(src flow.Source) bool {
		if kind == handoff.Input {
			return src.Kind == kind && src.Name == s.inputs[n].name
		}
		return src.Kind == kind && src.Name == s.tasks[n].Title
	})
	at := slices.IndexFunc(g.Readers, func(r flow.Reader) bool { return r.Name == reader })
	return source < 0 || table.Reach(source, at) != flow.Never
}

// known holds every prompt to the table and to the clearance of its reader.
func (s *ledSetting) known(table *flow.Table, w *variant, of *ledStory, sum *ledTally) string {
	for i := range of.sights {
		x := &of.sights[i]
		clearance := min(s.user, s.coordinator)
		if k := slices.IndexFunc(s.agents, func(m engine.Member) bool { return m.Name == x.agent }); k >= 0 {
			clearance = s.agents[k].Accepts
		}
		if x.receipt.Classification > clearance {
			return fmt.Sprintf("the prompt of %q is %v, and %s accepts %v", x.step, x.receipt.Classification, x.agent, clearance)
		}
		for _, c := range canaries.FindAllString(x.system+"\n"+x.text, -1) {
			place, met := w.known[c]
			if met && strings.HasPrefix(x.step, laterTurn) {
				if x.agent == handoff.Coordinator {
					sum.laterHas++
				}
				if s.reaches(table, split(place).source, handoff.Coordinator) {
					continue
				}
			}
			if met && (x.step == "the plan" || !s.reaches(table, split(place).source, x.agent)) {
				return fmt.Sprintf("%s came into the prompt of %q for %s, which it never reaches:\n%s", place, x.step, x.agent, x.text)
			}
		}
	}
	return ""
}

// compare holds a run with a source changed to the one without.
func (s *ledSetting) compare(table *flow.Table, place string, was, is *ledStory, sum *ledTally) string {
	endings := func(of *ledStory) (list []string) {
		for i := range of.result.Tasks {
			list = append(list, string(of.result.Tasks[i].Status))
		}
		for i := range of.result.Steps {
			list = append(list, fmt.Sprint(of.result.Steps[i].Kind))
		}
		return list
	}
	if !slices.Equal(endings(was), endings(is)) || len(was.sights) != len(is.sights) {
		sum.uneven++
		return ""
	}
	moved := false
	for i := range was.sights {
		a, b := &was.sights[i], &is.sights[i]
		differs := a.differs(b)
		moved = moved || differs != ""
		writes := strings.Replace(place, "task/", "Task ", 1) == a.step
		switch {
		case strings.HasPrefix(a.step, laterTurn):
			if s.reaches(table, place, handoff.Coordinator) {
				continue
			}
			sum.later++
			if differs != "" {
				return differs
			}
		case writes || a.step != "the plan" && s.reaches(table, place, a.agent):
			continue
		case differs != "":
			return differs
		case a.step == "the plan":
			sum.plans++
		case a.step == answering:
			sum.syntheses++
		default:
			sum.agents++
		}
	}
	if moved {
		sum.moved++
	}
	if s.way == inTurns && s.reaches(table, place, handoff.Coordinator) || strings.HasPrefix(place, "input/") && s.inputs[int(place[len(place)-1]-'0')].level <= s.user || s.reaches(table, place, handoff.User) {
		return ""
	}
	sum.answers++
	one, other := (&setting{}).reads(was.result), (&setting{}).reads(is.result)
	if one != other {
		return "what the user is told differs\n" + difference(one, other)
	}
	return ""
}
