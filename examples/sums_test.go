package examples_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// cents reads a sum as the documents write it: 12,455.00.
func cents(t *testing.T, sum string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.NewReplacer(",", "", ".", "").Replace(sum))
	require.NoError(t, err, sum)
	return n
}

// rows returns the groups of every line of a file that matches.
func rows(t *testing.T, file, pattern string) [][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^`+pattern+`$`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, found, pattern)
	return found
}

const sum = `([\d,]+\.\d\d)`

// The documents of the claim are written by hand: their sums have to agree.
func TestSumsOfTheClaim(t *testing.T) {
	t.Parallel()
	const claim = "claims/claim.md"
	lines, totals := map[string]int{}, map[string]int{} // by estimate, or C for contents
	amount := map[string]int{}
	for _, row := range rows(t, claim, `\| ([ABC])(\d*) \|.*\| `+sum+` \|`) {
		if row[2] == "" {
			totals[row[1]] = cents(t, row[3])
			continue
		}
		lines[row[1]] += cents(t, row[3])
		amount[row[1]+row[2]] = cents(t, row[3])
	}
	require.Len(t, totals, 3)
	require.Equal(t, totals, lines)

	claimed, accepted := map[string]int{}, map[string]int{}
	for _, row := range rows(t, claim, `\| ([A-Z][^|]+) \| `+sum+` \| `+sum+` \| [^|]+ \|`) {
		claimed[row[1]], accepted[row[1]] = cents(t, row[2]), cents(t, row[3])
	}
	require.Len(t, claimed, 5)
	for _, row := range rows(t, claim, `\| (Repair of the building|Contents|Finding the leak|Guest house) \| `+sum+` \|`) {
		require.Equal(t, claimed[row[1]], cents(t, row[2]), "form and report: %s", row[1])
	}
	for _, heads := range []map[string]int{claimed, accepted} {
		require.Equal(t, heads["Total"], heads["Repair of the building"]+heads["Contents"]+heads["Finding the leak"]+heads["Guest house"])
	}
	require.Equal(t, totals["A"], claimed["Repair of the building"])
	require.Equal(t, totals["A"]-amount["A7"]-amount["A8"], accepted["Repair of the building"])
	require.Equal(t, totals["C"], claimed["Contents"])
	require.Equal(t, totals["C"]-amount["C4"], accepted["Contents"])

	for _, row := range rows(t, claim, `\| `+sum+` \| `+sum+` \|`) {
		require.Equal(t, accepted["Total"]-cents(t, row[1]), cents(t, row[2]), "less a deductible of %s", row[1])
	}
	night := rows(t, "claims/policy.md", `2\.9 .*EUR `+sum+` a night.*`)[0][1]
	stay := rows(t, claim, `.*family room, (\d+) nights at EUR `+sum+`, together`)[0]
	nights, err := strconv.Atoi(stay[1])
	require.NoError(t, err)
	require.Equal(t, nights*cents(t, stay[2]), claimed["Guest house"])
	require.Equal(t, nights*cents(t, night), accepted["Guest house"])
}

func TestSumsOfTheOtherExamples(t *testing.T) {
	t.Parallel()
	total := 0
	for _, row := range rows(t, "failure/tills.md", `\| ([A-Z]\w+) \| `+sum+` \|`) {
		if row[1] == "Total" {
			require.Equal(t, total, cents(t, row[2]))
			total = -1
			break
		}
		total += cents(t, row[2])
	}
	require.Equal(t, -1, total, "there is a total")

	const contract = "contract-review/contract.md"
	months, err := strconv.Atoi(rows(t, contract, `3\.1 .*initial term is (\d+) months.*`)[0][1])
	require.NoError(t, err)
	charges := rows(t, contract, `5\.1 The monthly charge is EUR `+sum+`.*EUR `+sum+`.*`)[0]
	require.Equal(t, months*cents(t, charges[1]), cents(t, charges[2]))
}
