package specfile

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/connection"
	"github.com/runteam/runteam/internal/pricing"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A kind is what may be written as the value of a key.
type kind struct {
	name  string             // in the reference
	want  string             // in messages: "where … belongs"
	hint  string             // what to write instead
	many  string             // hint for a list; empty means hint
	none  string             // hint for null; empty means hint
	one   string             // what to write where its key is missing: the words to choose from, or an example
	each  string             // the place whose objects a list holds
	json  object             // the JSON Schema, which may accept more
	fits  func(n *node) bool // whether the value has the right type
	check check              // of a value of the right type; nil accepts every value
}

// A check reports what is wrong with the value of a key.
type check func(r *report, key string, n *node)

// passes reports whether a check finds nothing wrong.
func (r *report) passes(check check, key string, n *node) bool {
	before := r.problems
	check(r, key, n)
	return r.problems == before
}

// Hints that several kinds share. inQuotes is for a number, true or false where a text belongs.
const (
	inQuotes = "put it in quotes"
	textHint = "write the text, after | if it has several lines, or {file: PATH}"
)

// instead returns the hint for a value that is not of the kind.
func (k kind) instead(n *node) string {
	switch f, number := n.float(); {
	case n.is == isList && k.many != "":
		return k.many
	case n.is == isNull && k.none != "":
		return k.none
	case n.is == isNull && (k.hint == list.hint || k.hint == mapping.hint):
		return k.hint + "; or leave the key out"
	case k.hint == inQuotes && (n.is == isList || n.is == isObject):
		return "write one text"
	case k.hint == inQuotes && n.is == isNull:
		return "write one, or leave the key out"
	case k.name == millis.name && number && f < 0:
		return "write 0 or more"
	}
	return k.hint
}

// newKind returns the kind of the values of one type.
func newKind(is shape, name, want, hint string) kind {
	types := [...]string{isBool: "boolean", isNumber: "number", isText: "string", isList: "array", isObject: "object"}
	return kind{name: name, want: want, hint: hint, json: typed(types[is]), fits: func(n *node) bool { return n.is == is }}
}

var (
	anything = kind{name: "any"}
	anyText  = newKind(isText, "text", "a text", inQuotes)
	oneText  = anyText.as(filled).checked(checkNotBlank)
	filePath = newKind(isText, "path, `${ENV}`", "the path of a file", inQuotes).as(filled).ofOne("write one path").checked(checkNotBlank)
	given    = anyText.as(filled).checked(checkGiven).orElse("write one") // a required text
	millis   = newKind(isNumber, "milliseconds", "a number of milliseconds", "write a number such as 30000, which is 30 s, without quotes and unit").numbers(0, maxMillis)
	mapping  = newKind(isObject, "mapping", "a mapping", "write key: value lines below it, or {key: value}")
	list     = newKind(isList, "list", "a list", "write a line that begins with - for each, or [a, b]")
	schema   = newKind(isObject, "JSON Schema, `{file: PATH}` or name", "a JSON Schema, {file: PATH} or a name of schemas", "write {type: object, properties: …}").
			as(object{{"type", []any{"object", "string", "boolean"}}}).or(is(isText, isBool))
)

// kinds are the kinds that the table of keys names.
var kinds = map[string]kind{
	"anyText":        anyText,
	"value":          {name: "any value but null", want: "a value", hint: "write a text, a number, a list or a mapping", json: object{{"not", typed("null")}}, fits: func(n *node) bool { return n.is != isNull }},
	"inputText":      anyText.as(filled), // not empty, unless the options bring the text
	"text":           oneText,
	"person":         newKind(isText, "name of an agent", "the name of an agent", "write the name of an agent that is a person").as(filled).checked(checkNotBlank),
	"name":           oneText.checked(checkRuleName),
	"given":          given,
	"ruleSide":       given.ofOne(`write one rule for each pair, or "*" for all`),
	"entrySide":      given.ofOne("write one entry for each pair"),
	"envText":        newKind(isText, "text, `${ENV}`", "a text", inQuotes),
	"setting":        newKind(isText, "text, `${ENV}`", "a text", inQuotes).as(filled).checked(checkNotBlank),
	"secret":         newKind(isText, "text, `${ENV}`", "a text", "write ${NAME}, where NAME is a variable of the environment"),
	"path":           filePath,
	"folder":         newKind(isText, "folder, `${ENV}`", "the path of a folder", inQuotes).as(filled).ofOne("write one path").checked(checkNotBlank),
	"inputFile":      filePath.ofOne("write one path; one input for each file"),
	"backend":        newKind(isText, "`process`, `person`", "one of the words process, person", "write process or person").as(oneOf(backends)).such("process or person").checked(checkBackend),
	"boolean":        newKind(isBool, "true or false", "true or false", "write true or false, without quotes"),
	"never":          newKind(isText, "`never`", "the word never", "write never, or leave the key out").as(oneOf([]string{"never"})).fitting(func(n *node) bool { return n.text == "never" }),
	"pending":        newKind(isText, "`pending`", "the word pending", "leave the key out: every task begins pending").as(oneOf([]string{"pending"})).fitting(func(n *node) bool { return n.text == "pending" }),
	"previous":       newKind(isText, "`previous`", "the word previous", "write previous, or leave the key out").as(oneOf([]string{task.Previous})).fitting(func(n *node) bool { return n.text == task.Previous }),
	"provider":       newKind(isText, "`openai`", "openai", "write openai, or leave the key out").as(oneOf([]string{openAI})).checked(checkProvider),
	"instant":        newKind(isText, "time", "a time", `write it as "2026-01-31T09:30:00Z"`).as(object{{"type", "string"}, {"pattern", instantPattern}}).fitting(isInstant),
	"classification": words(label.Classifications()...),
	"strategy":       words(assign.Strategies()...).accepting(formerStrategies),
	"mayGrant":       wordList("memory", "inputs", "tools"),
	"mayPlan":        wordList("when", "repeat", "forEach", "verify"),

	"whole":      newKind(isNumber, "whole number", "a whole number", "write a number such as 2, without quotes").integers(-math.MaxInt32, math.MaxInt32),
	"count":      newKind(isNumber, "whole number from 1", "a whole number of at least 1", "write a number such as 4, without quotes, or leave the key out").integers(1, math.MaxInt32),
	"rounds":     newKind(isNumber, "whole number from 1 to 100", "a whole number from 1 to 100", "write a number such as 4, without quotes").integers(1, 100).such("4"),
	"items":      newKind(isNumber, "whole number from 1 to 10000", "a whole number from 1 to 10000", "write a number such as 20, without quotes").integers(1, 10_000).such("20"),
	"byteLimit":  newKind(isNumber, "bytes", fmt.Sprintf("a whole number from 1 to %d", maxLimit), "write a number of bytes, without quotes, or leave the key out").integers(1, maxLimit),
	"seed":       newKind(isNumber, "whole number", "a whole number", "write a number such as 7, without quotes").integers(-maxSeed, maxSeed),
	"price":      newKind(isNumber, "US dollars", "a number of US dollars", "write a number such as 0.15, without quotes and currency").numbers(0, pricing.Max),
	"costBudget": newKind(isNumber, "US dollars, more than 0", "a number of US dollars from 0.000001 to 1000000", "write a number such as 2.50, without quotes and currency, or leave the key out").numbers(minBudget, maxBudget),
	"millis":     millis,

	"texts":      newKind(isList, "list of texts", "a list of texts", "write [a, b]").as(listOf(typed("string"))).checked(checkTexts),
	"envTexts":   newKind(isList, "list of texts, `${ENV}`", "a list of texts", "write [a, b]").as(listOf(typed("string"))).checked(checkTexts),
	"assertions": newKind(isList, "list of assertions", "a list of assertions", "write a line such as - internal_notes never reaches letters").as(listOf(filled)).checked(checkAssertions),
	"allowPaths": newKind(isList, "list of paths", "a list of paths", "write a list such as [/score, /facts/**]").as(filledListOf(typed("string"))).checked(checkAllow),
	"blockPaths": newKind(isList, "list of paths and names", "a list of paths and names", "write a list such as [/facts/notes, internal_notes]").
		as(filledListOf(typed("string"))).checked(checkBlock),
	"filePaths": newKind(isList, "list of paths of files", "a list of paths", "write a list such as [report.md, src/**]").as(filledListOf(typed("string"))).checked(checkFilePaths),
	"users":     newKind(isList, "list of names of people", "a list of names of people", "write a list such as [ann@example.org]").as(filledListOf(filled)).checked(checkUsers),
	"globs":     newKind(isList, "list of globs", "a list of globs", "write a list such as [report.md, src/**]").as(filledListOf(typed("string"))).checked(checkGlobs),
	"personalKinds": newKind(isList, "list of `"+strings.Join(kindNames(), "`, `")+"`", "a list of kinds", "write a list such as [ip, mac]").
		as(filledListOf(oneOf(kindNames()))).checked(checkKinds),
	"dependsOn":    list.as(listOf(anyOf(typed("string"), ref("dependency")))),
	"uses":         list.as(listOf(anyOf(typed("string"), ref("use")))),
	"judges":       list.hinted("write [editor, lawyer]").as(filledListOf(anyOf(typed("string"), ref("judge")))).checked(checkNotEmpty),
	"alternatives": list.hinted("write [a, b]").as(append(listOf(typed("string")), member{"minItems", 2})).checked(checkAlternatives),
	"when": newKind(isObject, "see condition, list of them, or `else`", "a condition", whenHint).
		as(anyOf(oneOf([]string{whenElse}), nestedCondition)).or(is(isList, isText)).checked(checkWhen),
	"condition": newKind(isObject, "see condition, or list of them", "a condition", conditionHint).as(nestedCondition).or(is(isList)).checked(checkConditions),
	"conditions": newKind(isList, "list, see condition", "a list of conditions", "write a line that begins with - for each condition").
		as(filledListOf(ref("condition/properties/not"))).checked(checkConditions),
	"compared":    newKind(isText, "text, number, boolean or null", "a text, a number, true, false or null", "write one value").ofOne("write in for several values").as(comparable).or(isComparable),
	"comparables": newKind(isList, "list of texts, numbers, booleans and null", "a list of values", "write [a, b], or equals for one value").as(filledListOf(comparable)).checked(checkValues),
	"anyNumber":   newKind(isNumber, "number", "a number", "write a number such as 0.8, without quotes").numbers(-math.MaxFloat64, math.MaxFloat64).as(typed("number")),
	"patterns":    list.as(filledListOf(ref("pattern"))).checked(checkNotEmpty),
	"fallback": newKind(isList, "list", "a list of connections", "write lines such as - {model: …, baseURL: …}").
		as(append(filledListOf(ref("fallback")), member{"maxItems", maxFallback})).checked(checkFallback),

	"textOrFile": newKind(isText, "text or `{file: PATH}`", "a text or {file: PATH}", textHint).as(fileOr("string")).or(isFileRef),
	"goal":       newKind(isText, "text, `{file: PATH}`, or see goal", "a text or {file: PATH}", textHint).as(anyOf(filled, ref("goal"))).or(is(isObject)).checked(checkGoal),
	"stop": newKind(isText, "text, or list of 1 to 32", "a text, or a list of 1 to 32 texts", `write a text such as "END", or ["END", "STOP"]`).
		as(anyOf(stopText, append(filledListOf(stopText), member{"maxItems", maxStops}))).or(is(isList)).checked(checkStops),
	"schema": schema,

	"tools":   mapping.as(anyOf(mapOf(ref("tool")), append(typed("array"), member{"maxItems", 0}))).or(func(n *node) bool { return n.is == isList && n.len() == 0 }),
	"textMap": newKind(isObject, "mapping of texts, `${ENV}`", "a mapping of texts", "write {NAME: value}").as(mapOf(typed("string"))).checked(checkTextValues),
	"headers": newKind(isObject, "mapping of texts, `${ENV}`", "a mapping of texts", "write {Name: value}").as(mapOf(typed("string"))).checked(checkTextValues),
	"metadata": newKind(isObject, "mapping of texts, numbers, booleans and lists of them", "a mapping of texts, numbers, booleans and lists of them", "write {name: value}").
		as(mapOf(anyOf(object{{"type", []any{"string", "number", "boolean"}}}, anyOf(listOf(typed("string")), listOf(typed("number")), listOf(typed("boolean")))))),
	"reveal": newKind(isObject, "mapping of lists of paths, by kind", "a mapping of kinds", "write {iban: [/iban]}").
		as(namedMapOf(oneOf(kindNames()), filledListOf(typed("string")))).checked(checkReveals),
	"extraBody": newKind(isObject, "mapping", "a mapping", "write {name: value}").
		as(object{{"type", "object"}, {"propertyNames", object{{"pattern", connection.ExtraName}, {"not", oneOf(connection.Reserved())}}}}).checked(checkExtraBody),
	"provenance":    mapping.hinted("write {from: coordinator}, or remove it if the task is your own").as(ref("provenance")),
	"requires":      mapping.hinted("write {requiredCapabilities: [a, b]}").ofOne("write {requiredCapabilities: [a, b]}; tasks that it waits for stand in dependsOn").as(ref("requires")),
	"spawn":         mapping.hinted("write {max: 8}, or {} for the defaults").as(ref("spawn")),
	"loopDetection": mapping.hinted("write {maxRepetitions: 3}, or {} for the defaults").as(ref("loopDetection")),
	"summarize":     mapping.hinted("write {maxTokens: 200}").as(ref("summarize")),
	"inputs":        mapping.as(mapOf(anyOf(ref("input"), typed("null")))),
	"params":        mapping.as(namedMapOf(object{{"pattern", paramPattern}}, object{{"type", []any{"string", "number", "boolean", "null"}}})),
	"schemas":       mapping.as(mapOf(object{{"type", []any{"object", "boolean"}}})),
}

// kindOf returns the kind for a word in the table of keys.
func kindOf(word string) kind {
	named, known := kinds[word]
	place := strings.Trim(word, "{*:}[]")
	switch low, high, ranged := strings.Cut(word, ".."); {
	case known:
		return named
	case ranged:
		return number(low, high)
	case strings.Contains(word, "|"):
		return words(strings.Split(word, "|")...)
	case strings.HasPrefix(word, "["):
		k := list.as(listOf(ref(place)))
		k.each = place
		return k
	case strings.HasPrefix(word, "{*:"):
		return mapping.as(mapOf(ref(place)))
	}
	return mapping.as(ref(place))
}

// instantPattern matches a time as RFC 3339 writes it, in UTC.
const instantPattern = `^[0-9]{4}-(0[1-9]|1[0-2])-([0-2][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?Z$`

var instantForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(instantPattern) })

func isInstant(n *node) bool {
	_, err := time.Parse(time.RFC3339Nano, n.text)
	return err == nil && instantForm().MatchString(n.text)
}

// is returns whether a value has one of the types.
func is(shapes ...shape) func(*node) bool {
	return func(n *node) bool { return slices.Contains(shapes, n.is) }
}

// as returns the kind with another JSON Schema.
func (k kind) as(json object) kind {
	k.json = json
	return k
}

// hinted returns the kind with another hint.
func (k kind) hinted(hint string) kind {
	k.hint = hint
	return k
}

// ofOne returns the kind with a hint for a list.
func (k kind) ofOne(many string) kind {
	k.many = many
	return k
}

// orElse returns the kind with a hint for null.
func (k kind) orElse(none string) kind {
	k.none = none
	return k
}

// checked returns the kind with a check.
func (k kind) checked(check check) kind {
	k.check = check
	return k
}

// fitting returns the kind of the values that fit.
func (k kind) fitting(fits func(n *node) bool) kind {
	k.fits = fits
	return k
}

// or returns the kind of the values of k and of those that fit.
func (k kind) or(fits func(n *node) bool) kind {
	own := k.fits
	return k.fitting(func(n *node) bool { return own(n) || fits(n) })
}

// words returns the kind of one of several words.
func words(known ...string) kind {
	choice := strings.Join(known, ", ")
	k := newKind(isText, "`"+strings.Join(known, "`, `")+"`", "one of the words "+choice, "write one of "+choice).as(oneOf(known)).checked(func(r *report, key string, n *node) {
		if slices.Contains(known, n.text) {
			return
		}
		hint := "write one of " + choice
		if best := nearestOf(n.text, known...); best != "" {
			hint = fmt.Sprintf("did you mean %s? known are %s", best, choice)
		}
		r.bad(n, hint, "%s: unknown word %s", key, quote(n.text))
	})
	k.one = enumerate(known, "or")
	return k
}

// accepting returns a kind that accepts other words too, which its name and its hints do not list.
func (k kind) accepting(others []string) kind {
	check := k.check
	return k.as(anyOf(k.json, oneOf(others))).checked(func(r *report, key string, n *node) {
		if !slices.Contains(others, n.text) {
			check(r, key, n)
		}
	})
}

// formerStrategies are accepted here; the check of the team warns of them.
var formerStrategies = slices.Sorted(maps.Keys(assign.Former))

// wordList returns the kind of a list of such words.
func wordList(known ...string) kind {
	one := words(known...)
	return newKind(isList, "list of "+one.name, "a list of words", "write ["+strings.Join(known, ", ")+"], or one of them").as(listOf(oneOf(known))).checked(func(r *report, key string, n *node) {
		checkTexts(r, key, n)
		for _, item := range n.parts() {
			if item.is == isText {
				one.check(r, key, item)
			}
		}
	})
}

// number returns the kind of a number within bounds.
func number(from, to string) kind {
	low, _ := strconv.ParseFloat(from, 64)
	high, _ := strconv.ParseFloat(to, 64)
	want := "a number from " + from + " to " + to
	return newKind(isNumber, "number", want, "write "+want+", without quotes").numbers(low, high)
}

// numbers returns the kind for numbers within bounds.
func (k kind) numbers(low, high float64) kind {
	return k.as(bounded("number", low, high)).fitting(func(n *node) bool {
		f, ok := n.float()
		return ok && f >= low && f <= high
	})
}

// integers returns the kind for whole numbers within bounds.
func (k kind) integers(low, high int) kind {
	return k.as(bounded("integer", low, high)).fitting(func(n *node) bool {
		i, ok := n.whole()
		return ok && i >= low && i <= high
	})
}

// such returns the kind with a value to write where its key is missing.
func (k kind) such(one string) kind {
	k.one = one
	return k
}

// maxLimit is the largest size limit of a prompt or a piece of context, in bytes.
const maxLimit = 4 << 20

// maxMillis bounds times, in milliseconds: 285 years.
const maxMillis = 9e12

// isFileRef reports whether a value has the form {file: PATH}.
func isFileRef(n *node) bool {
	return n.is == isObject && n.len() == 1 && n.kids[0].key == "file" && n.kids[0].is == isText && strings.TrimSpace(n.kids[0].text) != ""
}

// duration returns a number of milliseconds; nil is zero.
func duration(n *node) time.Duration {
	if n == nil {
		return 0
	}
	f, _ := n.float()
	return time.Duration(math.Round(f * float64(time.Millisecond)))
}

// integer returns a whole number; nil is zero.
func integer(n *node) int {
	if n == nil {
		return 0
	}
	i, _ := n.whole()
	return i
}

// text returns a text; nil is empty.
func text(n *node) string {
	if n == nil {
		return ""
	}
	return n.text
}

// level returns a label; nil is the zero value, which is internal.
func level(n *node) label.Classification {
	if n == nil {
		return label.Internal
	}
	c, _ := label.ParseClassification(n.text)
	return c
}

// textList returns the texts of a list; nil is nil.
func textList(n *node) []string {
	if n == nil || n.len() == 0 {
		return nil
	}
	out := make([]string, n.len())
	for i, item := range n.parts() {
		out[i] = item.text
	}
	return out
}

func checkNotBlank(r *report, key string, n *node) {
	if strings.TrimSpace(n.text) == "" {
		r.bad(n, "write one, or leave the key out", "%s: it is empty", key)
	}
}

func checkTexts(r *report, key string, n *node) {
	for i, item := range n.parts() {
		if item.is != isText {
			r.bad(item, "put it in quotes", "%s[%d]: %s where a text belongs", key, i, item.describe())
		}
	}
}

// checkTextValues checks headers. It does not describe their values, which may be credentials.
func checkTextValues(r *report, key string, n *node) {
	for _, member := range n.parts() {
		if member.is != isText {
			r.bad(member, "put it in quotes", "%s: %s is not a text", key, quote(member.key))
		}
	}
}

// checkGoal reports an empty text; a mapping is checked when it is read.
func checkGoal(r *report, key string, n *node) {
	if n.is == isText {
		checkNotBlank(r, key, n)
	}
}

func checkProvider(r *report, key string, n *node) {
	if n.text != openAI {
		r.badAs(n, ErrRefused, providerHint(key, n.text), "%s: %s is not built in", key, quote(n.text))
	}
}
