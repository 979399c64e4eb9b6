package schema_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Patterns that a class by itself does not give away: what they spell is in
// their alternatives, in what may be left out, and in upper and lower case.
func TestBoundedCountsEveryChoiceOfAPattern(t *testing.T) {
	t.Parallel()
	var alternatives, optional []string
	for c := 'a'; c <= 'z'; c++ {
		alternatives = append(alternatives, string(c)+"_")
		optional = append(optional, string(c)+"?")
	}
	words := strings.Join(alternatives, "|") + "|__"
	tests := []struct {
		pattern string
		bounded bool
	}{
		{`^(?:` + words + `){1,32}$`, false},
		{`^(?:` + words + `){1,9}$`, false},
		{`^(?:` + words + `){1,8}$`, true},
		{`^(?:[a-f]|[g-l]y?|[m-r]y?|[s-x]y?){1,32}$`, false},
		{`^(?:[a-f]|[g-l]y?|[m-r]y?|[s-x]y?){8}$`, true},
		{`(?i)^the customer is lying about the leak in the bathroom no doubt$`, false},
		{`(?i)^approved after appeal$`, true},
		{`^(?:` + strings.Join(optional[6:], "") + `){3}$`, false},
		{`^` + strings.Join(optional, "") + `$`, true},
		{`^(?:(?:g|hh|ii|j)(?:x|yy)?){1,12}$`, false},
		{`^(?:` + strings.Repeat("xy|", 40) + `xy){1,32}$`, true}, // one text of each length
		{`^g{0,3}h{0,3}i{0,3}j{0,3}k{0,3}l{0,3}m{0,3}n{0,3}o{0,3}p{0,3}$`, true},
		{`^(?:g{0,2}h{0,2}i{0,2}j{0,2}k{0,2}){6}$`, false},
		{`^[ⅰ-ↈ]{10}$`, false}, {`^[٠-٩]{12}$`, true}, {`^[٠-٩]{13}$`, false}, {`^[😀😃😄😁]{22}$`, false},
		{`^(?:g|[^\\x00-\\x{10FFFF}]){0,40}$`, true}, {`^(?:[g-z]|x[^\\x00-\\x{10FFFF}]){0,20}$`, false}, // a class of nothing
		{`^[0-9a-fA-F -]{64}$`, true}, {`^(?:[0-9]{1,4}|[a-f]{2}|-){1,16}$`, true},
	}
	for _, tt := range tests {
		want := ""
		if !tt.bounded {
			want = "can spell anything"
		}
		requireBounded(t, parsed(t, `{"properties":{"a":{"type":"string","pattern":"`+tt.pattern+`"}}}`), "/a", want)
	}
}

// A pattern of pieces of fixed lengths matches as many texts as the product of
// what its pieces match: up to two to the power of 42 of them it is bounded.
func TestBoundedCountsTheTextsOfAPattern(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var pattern strings.Builder
		bits, length := 0.0, 0
		for range rapid.IntRange(1, 4).Draw(t, "pieces") {
			n := rapid.IntRange(1, 6).Draw(t, "times")
			switch rapid.SampledFrom([]string{"class", "alternatives", "digits", "case"}).Draw(t, "piece") {
			case "class":
				last := rapid.Int32Range('k', 'z').Draw(t, "last")
				fmt.Fprintf(&pattern, "[g-%c]{%d}", last, n)
				bits, length = bits+float64(n)*math.Log2(float64(last-'g'+1)), length+n
			case "alternatives":
				some := rapid.SliceOfNDistinct(rapid.StringMatching(`[g-z]{2}`), 1, 20, rapid.ID).Draw(t, "some")
				fmt.Fprintf(&pattern, "(?:%s){%d}", strings.Join(some, "|"), n)
				bits, length = bits+float64(n)*math.Log2(float64(len(some))), length+2*n
			case "digits":
				fmt.Fprintf(&pattern, "[0-9a-f]{%d}", n)
				length += n
			case "case":
				fmt.Fprintf(&pattern, "(?i:%s)", strings.Repeat("h", n))
				bits, length = bits+float64(n), length+n
			}
		}
		if math.Abs(bits-42) < 0.001 || length > 64 {
			t.Skip("too near to the bound to tell, or too long")
		}
		s, err := schema.Parse(`{"properties":{"a":{"type":"string","pattern":"^` + pattern.String() + `$"}}}`)
		require.NoError(t, err)
		err = s.Bounded("/a")
		require.Equal(t, bits < 42, err == nil, "%s has %v bits: %v", &pattern, bits, err)
	})
}

func TestBoundedAddsUpAllPartsOfAPath(t *testing.T) {
	t.Parallel()
	const (
		spells, long = "can spell anything", "more than 2560 characters"
		number       = `{"type":"number"}`
		letter       = `{"enum":["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q","r","s","t","u","v","w","x","y","z"," "]}`
		word         = `{"type":"string","pattern":"^[a-z]{5}$"}`
		status       = `{"enum":["open","closed","held","lost","won",null]}`
		hash         = `{"type":"string","pattern":"^[0-9a-f]{64}$"}`
		none         = `{"type":"object","additionalProperties":false}`
	)
	list := func(n int, items string) string {
		return fmt.Sprintf(`{"type":"array","maxItems":%d,"items":%s}`, n, items)
	}
	object := func(members ...string) string {
		for i, m := range members {
			members[i] = fmt.Sprintf(`"m%d":%s`, i, m)
		}
		return `{"type":"object","properties":{` + strings.Join(members, ",") + `},"additionalProperties":false}`
	}
	consts := `{"const":` + strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(letter, `{"enum":[`), `]}`), ",", `},{"const":`) + `}`
	tests := []struct {
		schema string // of /a
		path   task.Path
		want   string
	}{
		{list(64, number), "/a/**", ""}, {list(64, list(64, list(64, number))), "/a/**", long}, {list(8, list(8, number)), "/a/**", ""}, {list(9, list(8, number)), "/a/*/*", long},
		{list(64, list(64, letter)), "/a/**", spells}, {list(64, letter), "/a/**", spells}, {list(64, letter), "/a/*", spells},
		{list(8, letter), "/a/*", ""}, {list(9, letter), "/a/*", spells}, {list(4, list(2, letter)), "/a/**", ""}, {list(4, list(3, letter)), "/a/**", spells},
		{list(64, status), "/a/**", ""}, {list(64, list(40, status)), "/a/**", ""}, {list(64, list(41, status)), "/a/**", long},
		{list(40, hash), "/a/**", ""}, {list(41, hash), "/a/**", long},
		{list(64, object(word, number)), "/a/*/m0", spells}, {list(64, object(word, status)), "/a/*/m1", ""}, {list(1, object(word)), "/a/**", ""},
		{object(word), "/a/**", ""}, {object(word, word), "/a/**", spells}, {object(word, word), "/a/*", spells}, {object(word, word), "/a/m1", ""},
		{object(word, number, hash, status), "/a/**", ""}, {object(word, list(10, status), list(10, letter)), "/a/**", spells},
		{list(64, `{"anyOf":[`+consts+`]}`), "/a/*", spells}, {list(64, `{"anyOf":[{"const":"up"},{"const":"down"}]}`), "/a/*", ""},
		{list(64, `{"anyOf":[{"const":1},{"const":2},{"type":"integer"},{"type":"null"}]}`), "/a/*", ""},
		{list(64, `{"enum":[{"x":"a"},{"x":"b"},{"x":"c"},{"x":"d"},{"x":"e"},{"x":"f"},{"x":"g"}]}`), "/a/*/x", spells},
		{`{"type":"array","prefixItems":[` + strings.Repeat(letter+",", 8) + letter + `],"maxItems":9}`, "/a/*", spells},
		{`{"type":"array","prefixItems":[` + strings.Repeat(letter+",", 6) + letter + `],"maxItems":8,"items":` + letter + `}`, "/a/*", ""},
		{`{"type":"array","prefixItems":[` + strings.Repeat(letter+",", 6) + letter + `],"maxItems":9,"items":` + letter + `}`, "/a/*", spells},
		{`{"allOf":[` + list(64, letter) + `,` + list(8, `true`) + `,` + list(64, status) + `]}`, "/a/*", ""},
		{`{"allOf":[{"type":"array","items":` + number + `},` + list(64, list(64, number)) + `]}`, "/a/**", long},
		{`{"allOf":[{"type":"array","items":` + number + `},` + list(64, number) + `]}`, "/a/**", ""},
		{`{"anyOf":[` + list(64, number) + `,` + list(64, letter) + `]}`, "/a/**", spells},
		{list(64, list(64, none)), "/a/**", long}, {list(40, list(60, none)), "/a/**", ""}, // how many there are of each tells something
		{strings.Repeat(`{"type":"array","maxItems":64,"items":`, 12) + number + strings.Repeat(`}`, 12), "/a/**", long},
	}
	for _, tt := range tests {
		requireBounded(t, parsed(t, `{"properties":{"a":`+tt.schema+`}}`), tt.path, tt.want)
	}
}

func TestCapacity(t *testing.T) {
	t.Parallel()
	const hex40 = `{"type":"string","pattern":"^[0-9a-f]{40}$"}`
	const empty = `{"type":"object","additionalProperties":false}`
	list := func(n int, items string) string {
		return fmt.Sprintf(`{"type":"array","maxItems":%d,"items":%s}`, n, items)
	}
	values := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprint(i))
		}
		return `{"enum":[` + strings.Join(all, ",") + `]}`
	}
	tests := []struct {
		schema string // of /a
		path   task.Path
		want   int // -1: not bounded
	}{
		{`{"type":"boolean"}`, "/a", 1}, {`{"type":"null"}`, "/a", 1}, {`{"const":7}`, "/a", 1}, {values(6), "/a", 1}, {values(256), "/a", 1}, {values(257), "/a", 2},
		{`{"type":"number"}`, "/a", 17}, {`{"type":"integer"}`, "/a", 17}, {`{"type":"number","minimum":0,"maximum":1}`, "/a", 8}, {`{"type":"integer","minimum":0,"maximum":100}`, "/a", 1},
		{`{"type":"integer","minimum":0,"maximum":256}`, "/a", 2}, {`{"type":"integer","minimum":0}`, "/a", 17}, {`{"type":["integer","null"],"minimum":1,"maximum":5}`, "/a", 1},
		{`{"type":"integer","minimum":0,"maximum":1e30}`, "/a", 17}, {`{"type":["number","integer"],"minimum":0,"maximum":9}`, "/a", 8}, {`{"minimum":0,"maximum":9,"type":"integer","enum":[1,2]}`, "/a", 1},
		{hex40, "/a", 20}, {`{"type":"string","pattern":"^[A-Z]{2}-[0-9]{1,6}$"}`, "/a", 4}, {`{"type":"string","pattern":"^(low|mid|high)$"}`, "/a", 1}, {`{"type":"string","pattern":"^[0-9]+$","maxLength":12}`, "/a", 6},
		{`{"type":"string"}`, "/a", -1}, {`{}`, "/a", -1},
		{list(64, hex40), "/a/**", 1280}, {list(64, hex40), "/a/*", 1280}, {list(64, `{"type":"boolean"}`), "/a/*", 64}, {list(8, list(8, values(6))), "/a/**", 64}, {list(64, `{"type":"number"}`), "/a/*", 1088},
		{`{"type":"object","properties":{"x":` + hex40 + `,"y":{"type":"boolean"}},"additionalProperties":false}`, "/a/**", 21},
		{`{"type":"object","properties":{"x":` + hex40 + `,"y":{"type":"boolean"}},"additionalProperties":false}`, "/a/y", 1},
		{`{"anyOf":[{"const":1},{"const":2},{"const":3}]}`, "/a", 1}, {`{"anyOf":[` + hex40 + `,` + values(200) + `]}`, "/a", 20}, {`{"allOf":[` + hex40 + `,{"enum":["a","b"]}]}`, "/a", 1},
		{`{"type":"array","prefixItems":[` + hex40 + `,{"type":"boolean"}],"items":false,"maxItems":2}`, "/a/*", 21},
		{empty, "/a/**", 1}, {list(0, `true`), "/a/**", 1}, {list(64, empty), "/a/**", 64}, {list(8, list(8, empty)), "/a/**", 64}, {list(64, list(64, empty)), "/a/**", -1},
		{`{"type":"object","properties":{"x":` + empty + `,"y":` + empty + `},"additionalProperties":false}`, "/a/**", 2},
	}
	for _, tt := range tests {
		got, ok := parsed(t, `{"type":"object","properties":{"a":`+tt.schema+`}}`).Capacity(tt.path)
		if !ok {
			got = -1
		}
		require.Equal(t, tt.want, got, "%s in %s", tt.path, tt.schema)
	}
	var none *schema.Schema
	_, ok := none.Capacity("/a")
	require.False(t, ok)
}
