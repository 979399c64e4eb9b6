package assign_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// vocabulary is 2,400 words that a description may use; the first are common.
func vocabulary(r *rand.Rand) []string {
	syllables := strings.Fields("ar bel con der ent fi gra hol in jo ka lim mo nor op pre qua re sta tri un ver wi xen yo zu ment tion ing able")
	words := strings.Fields("the of and to in for with that is from each one what it as are by on which a")
	for len(words) < 2_400 {
		var b strings.Builder
		for range 2 + r.IntN(3) {
			b.WriteString(syllables[r.IntN(len(syllables))])
		}
		words = append(words, b.String())
	}
	return words
}

// prose returns n words. Common words are frequent, as in a language.
func prose(r *rand.Rand, words []string, n int) string {
	out := make([]string, n)
	for i := range out {
		x := r.Float64()
		out[i] = words[int(x*x*x*float64(len(words)))]
	}
	return strings.Join(out, " ") + "."
}

// crowd returns agents with descriptions, prompts of some 120 words, and four
// capabilities out of sixty.
func crowd(n int) []assign.Agent {
	r := rand.New(rand.NewPCG(1, 2))
	words := vocabulary(r)
	agents := make([]assign.Agent, n)
	for i := range agents {
		agents[i] = assign.Agent{
			Name: fmt.Sprintf("agent %d", i), Description: prose(r, words, 12), SystemPrompt: prose(r, words, 120),
			Provider: "openai", Tools: []string{"search", "read"}, Clearance: label.Confidential, Produces: label.Confidential,
			OutputTags: []string{"facts"}, MaxSession: time.Duration(10+i%5) * time.Minute,
		}
		for range 4 {
			k := 30 * r.IntN(60)
			agents[i].Capabilities = append(agents[i].Capabilities, words[20+k]+" "+words[21+k])
		}
	}
	return agents
}

// layers returns tasks of 40 words without assignees, ten a layer, with three
// dependencies each. Every tenth requires a tool, a provider and a tag.
func layers(tb testing.TB, n int) *graph.Graph {
	r := rand.New(rand.NewPCG(3, 4))
	words := vocabulary(rand.New(rand.NewPCG(1, 2)))
	title := func(i int) string { return fmt.Sprintf("Task number %d of the work", i) }
	specs := make([]task.Spec, n)
	for i := range specs {
		specs[i] = task.Spec{Title: title(i), Description: prose(r, words, 40), Timeout: 5 * time.Minute}
		for k := range min(3, i/10*3) {
			specs[i].DependsOn = append(specs[i].DependsOn, task.Ref{Task: title(10*(i/10-1) + (i+k)%10)})
		}
		if i%10 == 0 {
			specs[i].Requires = &task.Requires{Tools: []string{"search"}, Provider: "openai"}
			specs[i].RequiredTags = []string{"facts"}
		}
	}
	g, err := graph.Resolve(specs, time.Time{})
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

func BenchmarkTasks(b *testing.B) {
	agents := crowd(50)
	for _, n := range []int{1_000, 10_000, 100_000} {
		g := layers(b, n)
		labels := make([]label.Classification, n)
		for _, s := range strategies {
			b.Run(fmt.Sprintf("%s/%d", s, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := assign.Tasks(g, labels, agents, s); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/task")
			})
		}
	}
}

func BenchmarkBest(b *testing.B) {
	agents := crowd(50)
	goal := layers(b, 1).Task(0).Description
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := assign.Best(goal, agents, label.Internal); !ok {
			b.Fatal("nobody")
		}
	}
}
