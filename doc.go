// Package runteam introduces the module; it has no code of its own.
//
// runteam runs a team of LLM agents over a graph of tasks. An agent sees its
// task, the inputs that the task names and the results of the tasks that it
// depends on, and nothing else. Each of these pieces has an envelope with a label and
// passes a gate before it becomes part of a prompt. A receipt says where each byte of the
// prompt came from.
//
// A program starts with package team: [team.New] takes the agents,
// [team.Team.RunTasks] runs a graph of tasks, [team.Team.RunTeam] has a
// coordinator plan the tasks for a goal and answer it from their results, and
// [team.Team.Plan] says beforehand who would read what. Package agent makes an agent out of
// a model, package llm/openai calls models at OpenAI-compatible endpoints, package spec
// reads teams and tasks from a spec file, and package journal stores runs, so that they can
// be resumed after a crash. The command is in cmd/runteam.
//
// ARCHITECTURE.md follows one run through the packages.
//
// [team.New]: https://pkg.go.dev/github.com/runteam/runteam/team#New
// [team.Team.RunTeam]: https://pkg.go.dev/github.com/runteam/runteam/team#Team.RunTeam
// [team.Team.RunTasks]: https://pkg.go.dev/github.com/runteam/runteam/team#Team.RunTasks
// [team.Team.Plan]: https://pkg.go.dev/github.com/runteam/runteam/team#Team.Plan
package runteam
