// Package runteam introduces the module; it has no code of its own.
//
// runteam runs a team of LLM agents over a graph of tasks. An agent sees its
// task, the inputs that the task names and the results of the tasks that it
// depends on, and nothing else exists for it. Each of these pieces travels in
// a classified envelope and passes a gate before it becomes part of a prompt,
// and a receipt says for each byte of the prompt where it came from.
//
// A program starts with package team: [team.New] takes a roster of agents,
// [team.Team.RunTasks] runs a graph of tasks, [team.Team.RunTeam] has a
// coordinator plan the tasks for a goal and answer it from their results, and
// [team.Team.Plan] says beforehand who would read what. Package agent makes an agent out of a model, package
// llm/openai is that model behind any OpenAI-compatible endpoint, package
// spec reads teams and tasks from a file, and package journal keeps a run as it
// happens, so that it goes on after a crash. The command is in cmd/runteam.
//
// ARCHITECTURE.md follows one run through the packages.
//
// [team.New]: https://pkg.go.dev/github.com/runteam/runteam/team#New
// [team.Team.RunTeam]: https://pkg.go.dev/github.com/runteam/runteam/team#Team.RunTeam
// [team.Team.RunTasks]: https://pkg.go.dev/github.com/runteam/runteam/team#Team.RunTasks
// [team.Team.Plan]: https://pkg.go.dev/github.com/runteam/runteam/team#Team.Plan
package runteam
