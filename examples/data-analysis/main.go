// Command data-analysis runs an analyst that works on a table with a Go tool and draws a chart,
// and a writer that gets the chart and the analysis, but not the table.
//
// It needs no key and no network: the model is a scripted endpoint in the same process.
package main

import (
	"context"
	"embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/scripted"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
	"github.com/runteam/runteam/tool/builtin"
)

//go:embed data
var data embed.FS

//go:embed script.yaml
var script []byte

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "data-analysis:", err)
		os.Exit(1)
	}
}

type column struct {
	File   string `json:"file" jsonschema:"path of a CSV file in the workspace"`
	Label  string `json:"label" jsonschema:"column with the labels"`
	Number string `json:"number" jsonschema:"column with the numbers"`
}

// read returns the labels and the numbers of two columns of a file in the workspace.
func (c column) read(ctx context.Context) (labels []string, numbers []float64, root *os.Root, err error) {
	call, ok := tool.CallFrom(ctx)
	if !ok || call.Workspace == nil {
		return nil, nil, nil, errors.New("there is no workspace")
	}
	if root, err = call.Workspace(); err != nil {
		return nil, nil, nil, err
	}
	text, err := root.ReadFile(c.File)
	if err != nil {
		return nil, nil, nil, err
	}
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil || len(rows) == 0 {
		return nil, nil, nil, errors.Join(err, errors.New("the file has no rows"))
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i + 1
	}
	if at[c.Label] == 0 || at[c.Number] == 0 {
		return nil, nil, nil, fmt.Errorf("the columns are %s", strings.Join(rows[0], ", "))
	}
	for _, row := range rows[1:] {
		n, err := strconv.ParseFloat(row[at[c.Number]-1], 64)
		if err != nil {
			return nil, nil, nil, err
		}
		labels, numbers = append(labels, row[at[c.Label]-1]), append(numbers, n)
	}
	return labels, numbers, root, nil
}

// A summary says what is in a column.
type summary struct {
	Rows     int     `json:"rows"`
	Sum      float64 `json:"sum"`
	Greatest string  `json:"greatest"`
}

// summarize computes the summary of a column.
func summarize(ctx context.Context, c column) (summary, error) {
	labels, numbers, _, err := c.read(ctx)
	if err != nil {
		return summary{}, err
	}
	s := summary{Rows: len(numbers)}
	greatest := 0
	for i, n := range numbers {
		if s.Sum += n; n > numbers[greatest] {
			greatest = i
		}
	}
	if len(labels) > 0 {
		s.Greatest = labels[greatest]
	}
	return s, nil
}

// draw writes a bar chart of a column as chart.svg into the workspace.
func draw(ctx context.Context, c column) (string, error) {
	labels, numbers, root, err := c.read(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="400" height="%d">`+"\n", 30*len(labels))
	for i, n := range numbers {
		fmt.Fprintf(&b, `<rect x="100" y="%d" width="%.0f" height="20"/><text x="0" y="%d">%s</text>`+"\n", 30*i, n/3, 30*i+15, labels[i])
	}
	b.WriteString("</svg>\n")
	return "wrote chart.svg", root.WriteFile("chart.svg", []byte(b.String()), 0o644)
}

// run analyses the table and writes the report and the chart.
func run(ctx context.Context, out io.Writer) error {
	replies, err := scripted.Parse("script.yaml", script)
	if err != nil {
		return err
	}
	endpoint, err := scripted.Start(replies)
	if err != nil {
		return err
	}
	defer endpoint.Close()
	model, err := endpoint.Model("scripted")
	if err != nil {
		return err
	}
	tm, err := newTeam(model)
	if err != nil {
		return err
	}
	folder, err := fs.Sub(data, "data")
	if err != nil {
		return err
	}
	table, err := team.ReadFolder(folder)
	if err != nil {
		return err
	}
	tasks := []task.Spec{
		{
			Title: "Analyse", Assignee: "analyst", Description: "How do rentals develop? Draw them.",
			Uses: []task.Use{{Name: "table", At: "."}}, OutputFiles: []string{"*.svg"},
		},
		{
			Title: "Report", Assignee: "writer", Description: "Write two sentences, and refer to the chart.",
			DependsOn: []task.Ref{{Task: "Analyse", Files: []task.Path{task.Whole}}},
		},
	}
	res, err := tm.RunTasks(ctx, tasks, &team.RunOptions{Inputs: []team.Input{{Name: "table", Folder: table}}})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n\n%s", res.Output, res.OutputFiles("Analyse")["chart.svg"])
	return nil
}

// newTeam makes the analyst, who has the table and two Go tools, and the writer, who reads
// files.
func newTeam(model llm.Model) (*team.Team, error) {
	summary, err := tool.New("summarize", "Summarizes a column of a CSV file.", summarize, tool.Options{Effect: tool.None})
	if err != nil {
		return nil, err
	}
	chart, err := tool.New("draw_chart", "Draws a column of a CSV file as chart.svg.", draw, tool.Options{Effect: tool.Workspace})
	if err != nil {
		return nil, err
	}
	files, err := builtin.Files("readonly", tool.Options{Accepts: label.Internal})
	if err != nil {
		return nil, err
	}
	return team.New(team.Config{Agents: []team.Member{
		{Name: "analyst", Agent: agent.New(model, agent.Options{}), Tools: append(files, summary, chart)},
		{Name: "writer", Agent: agent.New(model, agent.Options{}), Tools: files},
	}})
}
