package assign_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

var (
	someWords = strings.Fields("invoice market letter fraud review contract translate deploy cluster sql go tax the of with under")
	someTools = strings.Fields("scan print shell")
	someTags  = strings.Fields("facts terms")
)

// A draw is a random assignment to be made.
type draw struct {
	specs  []task.Spec
	labels []label.Classification
	agents []assign.Agent
}

// drawn draws tasks and agents among whom someone may do everything.
func drawn(t *rapid.T) draw {
	some := func(from []string, name string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 0, 2, rapid.ID).Draw(t, name)
	}
	prose := func(name string) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(someWords), 0, 8).Draw(t, name), " ")
	}
	level := rapid.SampledFrom([]label.Classification{label.Public, label.Internal, label.Confidential, label.Secret})
	var d draw
	for i := range rapid.IntRange(0, 5).Draw(t, "agents") {
		d.agents = append(d.agents, assign.Agent{
			Name: fmt.Sprintf("agent %c", 'a'+i), Description: prose("description"), SystemPrompt: prose("prompt"),
			Capabilities: some(someWords, "capabilities"), Tools: some(someTools, "tools"), OutputTags: some(someTags, "tags"),
			Backend: rapid.SampledFrom([]string{"", "process"}).Draw(t, "backend"), Provider: rapid.SampledFrom([]string{"", "openai"}).Draw(t, "provider"),
			Clearance: level.Draw(t, "clearance"), Produces: level.Draw(t, "produces"),
			MaxSession: rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "session"),
		})
	}
	d.agents = append(d.agents, assign.Agent{
		Name: "anybody", Capabilities: someWords, Tools: someTools, Backend: "process", Provider: "openai",
		Clearance: label.Secret, Produces: label.Secret, OutputTags: someTags,
	})
	for i := range rapid.IntRange(0, 12).Draw(t, "tasks") {
		s := task.Spec{Title: fmt.Sprintf("task %d %s", i, prose("title")), Description: "x " + prose("text")}
		for _, k := range rapid.SliceOfNDistinct(rapid.IntRange(0, max(i-1, 0)), 0, min(i, 3), rapid.ID).Draw(t, "deps") {
			s.DependsOn = append(s.DependsOn, task.Ref{Task: d.specs[k].Title})
		}
		if rapid.IntRange(0, 3).Draw(t, "named") == 0 {
			s.Assignee = rapid.SampledFrom(d.agents).Draw(t, "assignee").Name
		} else {
			s.Requires = &task.Requires{
				Capabilities: some(someWords, "required"), Tools: some(someTools, "tools"),
				Backend: rapid.SampledFrom([]string{"", "", "Process"}).Draw(t, "backend"), Provider: rapid.SampledFrom([]string{"", "", "OpenAI"}).Draw(t, "provider"),
			}
			s.RequiredTags = some(someTags, "tags")
			s.Timeout = rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, 2 * time.Minute, time.Hour, 2 * time.Hour}).Draw(t, "timeout")
		}
		d.specs = append(d.specs, s)
		d.labels = append(d.labels, level.Draw(t, "label"))
	}
	return d
}

func (d draw) assign(t *rapid.T, s assign.Strategy) []int32 {
	got, err := assign.Tasks(graphOf(t, d.specs), d.labels, d.agents, s)
	require.NoError(t, err)
	return got
}

// eligible is what Tasks promises of an agent that it chooses, said once more.
func eligible(a assign.Agent, s task.Spec, level label.Classification) bool {
	all := func(asked, has []string) bool {
		return !slices.ContainsFunc(asked, func(one string) bool { return !slices.Contains(has, one) })
	}
	return all(s.Requires.Capabilities, a.Capabilities) && all(s.Requires.Tools, a.Tools) && all(s.RequiredTags, a.OutputTags) &&
		(s.Requires.Backend == "" || strings.EqualFold(s.Requires.Backend, a.Backend)) &&
		(s.Requires.Provider == "" || strings.EqualFold(s.Requires.Provider, a.Provider)) &&
		a.Clearance >= level && a.Produces >= level && (a.MaxSession == 0 || s.Timeout <= a.MaxSession)
}

func TestChosenAgentIsEligible(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawn(t)
		for _, s := range strategies {
			for i, who := range d.assign(t, s) {
				if d.specs[i].Assignee != "" {
					require.Equal(t, d.specs[i].Assignee, d.agents[who].Name)
				} else {
					require.True(t, eligible(d.agents[who], d.specs[i], d.labels[i]), "%s: task %d, agent %d", s, i, who)
				}
			}
		}
	})
}

// TestTaskWithoutAnEligibleAgentIsRefused takes the agent away who may do everything.
func TestTaskWithoutAnEligibleAgentIsRefused(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawn(t)
		d.agents = d.agents[:len(d.agents)-1]
		var want []string
		for i := range d.specs {
			s := &d.specs[i]
			if s.Assignee == "anybody" {
				s.Assignee, s.Requires = "", &task.Requires{}
			}
			if s.Assignee == "" && !slices.ContainsFunc(d.agents, func(a assign.Agent) bool { return eligible(a, *s, d.labels[i]) }) {
				want = append(want, fmt.Sprint("/tasks/", i))
			}
		}
		_, err := assign.Tasks(graphOf(t, d.specs), d.labels, d.agents, "")
		var got []string
		if err != nil {
			for _, p := range err.(task.Problems) {
				require.ErrorIs(t, p, assign.ErrNoAgent)
				require.NoError(t, naming.CheckLine(p.Error()))
				got = append(got, p.Pointer[:strings.LastIndex(p.Pointer, "/")])
			}
		}
		require.Equal(t, want, got)
	})
}

func TestAssignmentIsDeterministic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawn(t)
		for _, s := range strategies {
			first := d.assign(t, s)
			for range 3 {
				require.Equal(t, first, d.assign(t, s))
			}
		}
	})
}

// TestOrderWithinATaskOrAnAgentDoesNotMatter shuffles what is a set: the words
// of texts, capabilities, tools, tags and dependencies.
func TestOrderWithinATaskOrAnAgentDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawn(t)
		before := map[assign.Strategy][]int32{}
		for _, s := range strategies {
			before[s] = d.assign(t, s)
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		mix := func(list []string) { r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] }) }
		text := func(s *string) {
			words := strings.Fields(*s)
			mix(words)
			*s = strings.ToUpper(strings.Join(words, "; "))
		}
		for i := range d.agents {
			a := &d.agents[i]
			a.Capabilities, a.Tools, a.OutputTags = slices.Clone(a.Capabilities), slices.Clone(a.Tools), slices.Clone(a.OutputTags)
			mix(a.Capabilities)
			mix(a.Tools)
			mix(a.OutputTags)
			text(&a.Description)
			text(&a.SystemPrompt)
		}
		for i := range d.specs {
			s := &d.specs[i]
			text(&s.Description)
			r.Shuffle(len(s.DependsOn), func(i, j int) { s.DependsOn[i], s.DependsOn[j] = s.DependsOn[j], s.DependsOn[i] })
			if s.Requires != nil {
				mix(s.Requires.Capabilities)
				mix(s.Requires.Tools)
				mix(s.RequiredTags)
			}
		}
		for _, s := range strategies {
			require.Equal(t, before[s], d.assign(t, s), s)
		}
	})
}

// TestIneligibleAgentChangesNothing adds an agent at the end that is never
// eligible. It does change how rare a word is, and so is not asked of fit.
func TestIneligibleAgentChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawn(t)
		d.labels = slices.Repeat([]label.Classification{label.Internal}, len(d.specs))
		before := d.assign(t, "")
		more := d
		more.agents = append(slices.Clone(d.agents), assign.Agent{Name: "outsider", Tools: someTools, Clearance: label.Public})
		require.Equal(t, before, more.assign(t, ""))
	})
}

func TestInTurnIsFair(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawn(t)
		for i := range d.specs {
			d.specs[i].Requires, d.specs[i].RequiredTags, d.specs[i].Timeout, d.labels[i] = nil, nil, 0, label.Public
		}
		count := make([]int, len(d.agents))
		for i, who := range d.assign(t, "") {
			if d.specs[i].Assignee == "" {
				count[who]++
			}
		}
		require.LessOrEqual(t, slices.Max(count)-slices.Min(count), 1, count)
	})
}

// TestInTurnFollowsAQueue compares with a list from which the eligible are taken.
func TestInTurnFollowsAQueue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawn(t)
		for i := range d.specs {
			d.specs[i].DependsOn = nil // the order of the input
		}
		var line []int32
		want := []int32{}
		for k := range d.agents {
			line = append(line, int32(k))
		}
		for i, s := range d.specs {
			ask := s.Assignee == ""
			at := slices.IndexFunc(line, func(k int32) bool {
				return ask && eligible(d.agents[k], s, d.labels[i]) || d.agents[k].Name == s.Assignee
			})
			want = append(want, line[at])
			if ask {
				who := line[at]
				line = append(slices.Delete(line, at, at+1), who)
			}
		}
		require.Equal(t, want, d.assign(t, ""))
	})
}

// TestDependentsEqualASearch compares the order in which tasks are served with
// the counts of a search from each task. As many agents as tasks show it: each
// task's agent is its place. The graphs span several blocks.
func TestDependentsEqualASearch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(500, 1_300)).Draw(t, "tasks")
		most, reach := rapid.IntRange(0, 4).Draw(t, "dependencies"), rapid.SampledFrom([]int{1, 3, 30, 2_000}).Draw(t, "reach")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		g := graphOf(t, tangle(r, n, most, reach))
		count := searched(g)
		places := make([]int, n)
		for i := range places {
			places[i] = i
		}
		slices.SortStableFunc(places, func(i, j int) int { return count[j] - count[i] })
		want := make([]int32, n)
		for place, i := range places {
			want[i] = int32(place)
		}
		got, err := assign.Tasks(g, make([]label.Classification, n), make([]assign.Agent, n+1), assign.DependencyFirst)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

// tangle returns tasks, shuffled, that depend on up to most of those up to reach before them.
func tangle(r *rand.Rand, n, most, reach int) []task.Spec {
	list := make([]task.Spec, n)
	for i := range list {
		list[i] = task.Spec{Title: fmt.Sprint("task ", i), Description: "Do it."}
		seen := map[int]bool{}
		for range min(most, i) {
			if k := i - 1 - r.IntN(min(reach, i)); !seen[k] && r.IntN(4) > 0 {
				seen[k] = true
				list[i].DependsOn = append(list[i].DependsOn, task.Ref{Task: fmt.Sprint("task ", k)})
			}
		}
	}
	r.Shuffle(n, func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// searched counts the dependents of each task by following all arrows from it.
func searched(g *graph.Graph) []int {
	count := make([]int, g.Len())
	seen := make([]int, g.Len())
	for i := range count {
		open := []int32{int32(i)}
		for len(open) > 0 {
			at := open[len(open)-1]
			open = open[:len(open)-1]
			for _, j := range g.Downstream(int(at)) {
				if seen[j] != i+1 {
					seen[j] = i + 1
					count[i]++
					open = append(open, j)
				}
			}
		}
	}
	return count
}

// FuzzBest checks that a text means the same if it is repeated, and however its
// letters are composed.
func FuzzBest(f *testing.F) {
	f.Add("Review the contract", "contract review", "sql")
	f.Add("Pru\u0308fung der Verträge", "Übersetzung", "Prüfung")
	f.Add("データベースを検索", "検索 Go", "ｶﾞ金\u0e40\u0e01")
	f.Add("\xff\u0301 e\u0301\u200d", "\u0345", "É")
	f.Fuzz(func(t *testing.T, text, first, second string) {
		agents := []assign.Agent{{Name: "a", Description: first}, {Name: "b", SystemPrompt: second, Capabilities: []string{first, second}}, {Name: "c", Description: second}}
		once, ok := assign.Best(text, agents, label.Internal)
		require.True(t, ok)
		for _, same := range []string{text + "\n" + text, norm.NFD.String(text)} {
			again, _ := assign.Best(same, agents, label.Internal)
			require.Equal(t, once, again)
		}
	})
}
