package planning_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/runteam/runteam/internal/planning"
)

// bigPlan returns the text of a valid plan of n tasks, of about 500 bytes each.
func bigPlan(n int) (string, planning.Rules) {
	rules := planning.Rules{Agents: []string{"analyst", "writer", "critic"}}
	tasks := make([]map[string]any, n)
	for i := range tasks {
		tasks[i] = map[string]any{
			"title":       fmt.Sprintf("Step %d of the survey", i),
			"description": fmt.Sprintf("Read what you are given about region %d. List the five most important changes since last year, each in one sentence, with the figure that shows it and the source that it comes from. If two sources disagree, give both figures and say which one is newer. Write plain text without headings, at most 200 words. Do not guess what is not there: leave it out.", i),
			"assignee":    rules.Agents[i%3],
			"priority":    "high",
			"maxRetries":  1,
		}
		if i >= 10 {
			tasks[i]["dependsOn"] = []string{fmt.Sprintf("Step %d of the survey", i-10), fmt.Sprintf("Step %d of the survey", i-9)}
		}
	}
	text, _ := json.MarshalIndent(tasks, "", "  ")
	return string(text), rules
}

func BenchmarkParsePlan(b *testing.B) {
	for _, n := range []int{10, 1_000} {
		for _, form := range []string{"whole", "fenced", "prose"} {
			text, rules := bigPlan(n)
			switch form {
			case "fenced":
				text = "Here is the plan.\n```json\n" + text + "\n```\nIt has few dependencies."
			case "prose":
				text = "Here is the plan: " + text + " It has few dependencies."
			}
			b.Run(fmt.Sprintf("%s/%d", form, n), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := planning.ParsePlan(text, rules); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
