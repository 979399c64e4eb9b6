// Command list prints arguments of go test that select the tests of one step of the Makefile. Each test of the fast suite
// is in one of the first three:
//
//	packages    packages that start goroutines, for the race detector
//	concurrent  tests of other packages that start goroutines, for the race detector
//	rest        all other tests
//	slow        tests that use package slowtest, which the fast suite runs in part or not at all, and the properties of
//	            packages that draw fewer cases there
package main

import (
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"strings"
)

// fronts are packages that start no goroutine, but whose tests mostly test one that does.
var fronts = []string{"./team", "./journal"}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("list: want one argument: packages, concurrent, rest or slow")
	}
	text, err := arguments(".", os.Args[1])
	if err != nil {
		log.Fatal("list: ", err)
	}
	fmt.Println(text)
}

// arguments returns the arguments of a step for the packages below root.
func arguments(root, step string) (string, error) {
	folders, err := parse(root)
	if err != nil {
		return "", err
	}
	raced := map[string]*folder{}
	for path, f := range folders {
		if slices.Contains(fronts, path) || startsGoroutines(f.code) {
			raced[path] = f
			delete(folders, path)
		}
	}
	concurrent := testsThat(folders, goroutines)
	switch step {
	case "packages":
		return paths(raced), nil
	case "concurrent":
		return pattern("-run", concurrent) + paths(having(folders, concurrent)), nil
	case "rest":
		return pattern("-skip", concurrent) + paths(folders), nil
	case "slow":
		maps.Copy(folders, raced)
		slow := testsThat(folders, slowTests)
		return pattern("-run", slow) + paths(having(folders, slow)), nil
	}
	return "", fmt.Errorf("unknown step %q; want packages, concurrent, rest or slow", step)
}

// testsThat returns the names of the tests that use a mark, sorted.
func testsThat(folders map[string]*folder, mark string) (names []string) {
	for _, f := range folders {
		names = append(names, f.using(mark)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// having returns the folders that have a test of one of the names, so that a name means the same in all.
func having(folders map[string]*folder, names []string) map[string]*folder {
	some := map[string]*folder{}
	for path, f := range folders {
		if slices.ContainsFunc(names, func(name string) bool { _, ok := f.uses[name]; return ok }) {
			some[path] = f
		}
	}
	return some
}

// pattern returns a flag of go test that selects tests by their names, and a space.
func pattern(flag string, names []string) string {
	return fmt.Sprintf("%s=^(%s)$ ", flag, strings.Join(names, "|"))
}

// paths returns the paths of the folders that have tests, sorted and separated by spaces.
func paths(folders map[string]*folder) string {
	var tested []string
	for _, path := range slices.Sorted(maps.Keys(folders)) {
		if folders[path].tested {
			tested = append(tested, path)
		}
	}
	return strings.Join(tested, " ")
}
