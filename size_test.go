package runteam_test

import (
	"fmt"
	"go/importer"
	"io"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/slowtest"
)

const sizeFile = "docs/size.md"

// TestSize compares the size of the module with docs/size.md, so that it grows only with a reason there,
// and falls for good.
func TestSize(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("docs/size.md has the figures of the files that Linux builds")
	}
	if slowtest.RaceDetector {
		t.Skip("go list would compile all dependencies for the race detector, and the figures are the same without it")
	}
	tree, err := parsedTree()
	require.NoError(t, err)
	exports, err := exportData(tree, module)
	require.NoError(t, err)
	outside := importer.ForCompiler(tree.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	m, err := measure(tree, module, outside)
	require.NoError(t, err)
	logPackages(t, m)

	page, problems := checkSize(read(t, sizeFile), m, *update)
	if *update {
		require.NoError(t, os.WriteFile(sizeFile, []byte(page), 0o644))
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// logPackages shows with -v what each package weighs, the heaviest first.
func logPackages(t *testing.T, m measurement) {
	if !testing.Verbose() {
		return
	}
	t.Log("  lines  tokens  files  exported  knot  package")
	for _, name := range slices.SortedFunc(maps.Keys(m.packages), func(a, b string) int { return m.packages[b].lines - m.packages[a].lines }) {
		p := m.packages[name]
		t.Logf("%7d %7d %6d %9d %4d%%  %s %v", p.lines, p.tokens, p.files, p.exported, p.knotShare(), name, p.knot)
	}
}

// A sizeTotal is one row of the table of totals. A total is at most its base and what the reasons add.
type sizeTotal struct {
	name  string
	found int
	room  int // how far it may fall, per thousand, before its base is lowered
	spare int // how far it may grow, per thousand, after its base was lowered
}

// A sizeList is one of the lists: what is larger than a limit, with its figure.
type sizeList struct {
	heading, unit string
	most          int
	found         map[string]int
	room          int // how far a figure may fall before its row is edited
}

// totalsOf returns the totals that docs/size.md has.
func totalsOf(m measurement, lists []sizeList) []sizeTotal {
	var all packageSize
	for _, p := range m.packages {
		all.lines, all.tokens, all.exported, all.knotLines = all.lines+p.lines, all.tokens+p.tokens, all.exported+p.exported, all.knotLines+p.knotLines
	}
	totals := []sizeTotal{
		{"code lines", all.lines, 10, 5},
		{"tokens", all.tokens, 10, 5},
		{"lines in knots", all.knotLines, 10, 5},
		{"exported names", all.exported, 0, 0},
	}
	for _, l := range lists {
		if l.room > 0 {
			continue // of knots: the lines in knots say it
		}
		above := 0
		for _, n := range l.found {
			above += n - l.most
		}
		totals = append(totals, sizeTotal{l.unit + " above " + strconv.Itoa(l.most), above, 10, 0})
	}
	return totals
}

// listsOf returns the lists that docs/size.md has.
func listsOf(m measurement) []sizeList {
	knots := map[string]int{}
	for name, p := range m.packages {
		if p.lines >= leastKnotted {
			knots[name] = p.knotShare()
		}
	}
	lists := []sizeList{
		{"Structs", "fields", mostFields, m.fields, 0},
		{"Types", "operations", mostOperations, m.operations, 0},
		{"Knots", "per cent", mostKnot, knots, 3},
		{"Functions", "lines", mostFunction, m.functions, 0},
	}
	for i, l := range lists {
		lists[i].found = map[string]int{}
		for name, n := range l.found {
			if n > l.most {
				lists[i].found[name] = n
			}
		}
	}
	return lists
}

// checkSize compares the tables of a page with what was measured. It returns what is wrong, and with
// update the page with lower figures, for which nothing is wrong any more.
func checkSize(page string, m measurement, update bool) (updated string, problems []string) {
	c := sizeCheck{page: page, update: update}
	lists := listsOf(m)
	for _, l := range lists {
		c.list(l)
	}
	c.totals(totalsOf(m, lists))
	return c.page, c.problems
}

type sizeCheck struct {
	page     string
	update   bool
	problems []string
}

func (c *sizeCheck) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// list compares the table of a list.
func (c *sizeCheck) list(l sizeList) {
	listed := map[string]int{}
	for _, row := range c.rows(l.heading, 2) {
		name := strings.Trim(row[1], "`")
		if _, twice := listed[name]; twice {
			c.problem("%s lists %s twice under %q", sizeFile, name, l.heading)
		}
		listed[name] = c.number(row[0])
	}
	for _, name := range slices.Sorted(maps.Keys(l.found)) {
		n, row := l.found[name], sizeRow(l.found[name], name)
		was, ok := listed[name]
		switch {
		case !ok:
			c.problem("%s: %d %s, more than %d. Find the second thing in it. If it must be so large, write %q under %q in %s; a total that grows with it needs a reason there", name, n, l.unit, l.most, row, l.heading, sizeFile)
		case n > was:
			c.problem("%s: %d %s, and %s lists it with %d: leave it as small as it was. If it must grow, write %q; a total that grows with it needs a reason there", name, n, l.unit, sizeFile, was, row)
		case n < was-l.room && c.update:
			listed[name] = n + l.room/2
		case n < was-l.room:
			c.problem("%s: %d %s, and %s lists it with %d: \"go test . -run TestSize -update\" lowers it, to %q", name, n, l.unit, sizeFile, was, sizeRow(n+l.room/2, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		if _, ok := l.found[name]; ok {
			continue
		}
		if c.update {
			delete(listed, name)
		} else {
			c.problem("%s has no more than %d %s, or is gone: remove it from the list in %s; \"go test . -run TestSize -update\" does", name, l.most, l.unit, sizeFile)
		}
	}
	if c.update {
		var rows strings.Builder
		for _, name := range slices.Sorted(maps.Keys(listed)) {
			rows.WriteString(sizeRow(listed[name], name) + "\n")
		}
		c.replace(l.heading, rows.String())
	}
}

func sizeRow(n int, name string) string { return fmt.Sprintf("| %d | `%s` |", n, name) }

// totals compares the table of totals, whose bases grow by the rows that say why.
func (c *sizeCheck) totals(totals []sizeTotal) {
	added := map[string]int{}
	for _, row := range c.rows("Why a total grew", 3) {
		n := c.number(row[1])
		if n <= 0 || len(row[2]) < 20 {
			c.problem("%s: the row %q needs a number that adds to a total, and a reason", sizeFile, strings.Join(row, " | "))
		}
		added[row[0]] += n
	}
	rows := c.rows("Totals", 3)
	var lowered strings.Builder
	for i, total := range totals {
		if i >= len(rows) || rows[i][0] != total.name {
			c.problem("%s: row %d of the totals is that of %s", sizeFile, i+1, total.name)
			return
		}
		base := c.number(rows[i][1])
		most := base + added[total.name]
		delete(added, total.name)
		lower := total.found + total.found*total.spare/1000
		switch {
		case total.found > most:
			c.problem("%d %s, %d more than %s allows: remove as many elsewhere, or write \"| %s | %d | the reason |\" under \"Why a total grew\"", total.found, total.name, total.found-most, sizeFile, total.name, total.found-most)
		case total.found < most-most*total.room/1000 && c.update:
			base -= most - lower
		case total.found < most-most*total.room/1000:
			c.problem("%d %s, and %s allows %d: \"go test . -run TestSize -update\" lowers the base, to %s", total.found, total.name, sizeFile, most, thousands(base-most+lower))
		}
		fmt.Fprintf(&lowered, "| %s | %s | %s |\n", total.name, thousands(base), rows[i][2])
	}
	if len(rows) > len(totals) {
		c.problem("%s: there is no total %q", sizeFile, rows[len(totals)][0])
	}
	for _, name := range slices.Sorted(maps.Keys(added)) {
		c.problem("%s: a reason is for %q, which is no total", sizeFile, name)
	}
	if c.update {
		c.replace("Totals", lowered.String())
	}
}

// number reads a number of the page, such as 119,020.
func (c *sizeCheck) number(text string) int {
	n, err := strconv.Atoi(strings.ReplaceAll(strings.TrimPrefix(text, "+"), ",", ""))
	if err != nil {
		c.problem("%s: %q is no number", sizeFile, text)
	}
	return n
}

func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

var tableBody = regexp.MustCompile(`(?m)^\| --.*\n((?:\|.*\n)*)`)

// body returns where the rows of the table under a heading begin and end.
func (c *sizeCheck) body(heading string) (from, to int) {
	_, after, _ := strings.Cut(c.page, "\n## "+heading+"\n")
	section, _, _ := strings.Cut(after, "\n## ")
	if at := tableBody.FindStringSubmatchIndex(section); at != nil {
		start := len(c.page) - len(after)
		return start + at[2], start + at[3]
	}
	c.problem("%s has no table under %q", sizeFile, heading)
	return 0, 0
}

// rows returns the cells of the table under a heading.
func (c *sizeCheck) rows(heading string, columns int) (rows [][]string) {
	from, to := c.body(heading)
	for line := range strings.Lines(c.page[from:to]) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != columns {
			c.problem("%s: %q has %d cells; the table has %d", sizeFile, strings.TrimSpace(line), len(cells), columns)
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

// replace writes other rows into the table under a heading.
func (c *sizeCheck) replace(heading, rows string) {
	if from, to := c.body(heading); to > 0 {
		c.page = c.page[:from] + rows + c.page[to:]
	}
}
