package planning

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/naming"
)

// Bounds of a goal that may count as one plain step.
const (
	simpleChars   = 100 // characters of an English one
	simpleWords   = 16  // and its words
	questionChars = 60  // characters of a question in another language
	questionWords = 8   // and its words
	denseChars    = 16  // characters of one in a script without spaces
)

// Simple reports whether a goal is one plain step that needs no plan. It errs
// on the side of no: a plan for a plain goal costs one call, and a goal of
// several steps that gets none is badly answered. All of this must hold:
//
//   - It is one clean line of one sentence, without commas, colons, semicolons,
//     slashes, brackets, bullets, or dashes between spaces.
//   - No word of it joins steps or things (and, then, each, und, et, …), names
//     work that takes steps (research, compare, report, …), or means something
//     that only the caller has (our, code, files, …).
//   - It begins like a plain English question or order (what is, who, how many,
//     translate, define, …) and has at most 16 words and 100 characters.
//   - Or it has none of the small English words (the, of, how, …), and so is
//     taken for another language: then it must be a question, with a question
//     mark, of 2 to 8 words and at most 60 characters, or 16 characters in a
//     script without spaces, and none of its words may be one of the single
//     letters that mean "and" or "or" somewhere (y, e, i, и, …).
func Simple(goal string) bool {
	goal = strings.TrimSpace(goal)
	if naming.CheckLine(goal) != nil || utf8.RuneCountInString(goal) > simpleChars {
		return false
	}
	body := strings.TrimLeft(strings.TrimRightFunc(goal, ends), "¿")
	words := wordsOf(body)
	if len(words) == 0 || divided(body) || slices.ContainsFunc(words, heavy) {
		return false
	}
	if plainEnglish(words) {
		return len(words) <= simpleWords
	}
	return asked(goal) && shortQuestion(words, utf8.RuneCountInString(body))
}

// ends reports whether r may follow a sentence.
func ends(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(".!?。！？؟।…", r) }

// asked reports whether a text ends in a question mark of some script.
func asked(goal string) bool {
	last, _ := utf8.DecodeLastRuneInString(goal)
	return strings.ContainsRune("?？؟", last)
}

// wordsOf returns the words of a text in lower case, without quotes around them.
func wordsOf(body string) []string {
	words := strings.Fields(strings.ToLower(body))
	for i := range words {
		words[i] = strings.Trim(words[i], `"'.“”‘’„«»`)
	}
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}

// divided reports whether a text has several sentences, or parts in one.
func divided(body string) bool {
	for _, between := range [...]string{". ", " - ", "--"} {
		if strings.Contains(body, between) {
			return true
		}
	}
	return strings.ContainsAny(body, "!?。！？؟।…¿¡,;:，、；：،؛・/\\()[]{}<>（）&+|•*#=–—\n")
}

// plainEnglish reports whether the words begin as a plain question or order, and go on.
func plainEnglish(words []string) bool {
	for n := 1; n <= 3 && n < len(words); n++ {
		if starts[strings.Join(words[:n], " ")] {
			return true
		}
	}
	return false
}

// shortQuestion reports whether a question in some language but English is short.
func shortQuestion(words []string, chars int) bool {
	if slices.ContainsFunc(words, func(w string) bool { return english[w] }) {
		return false
	}
	if slices.ContainsFunc(words, dense) {
		return chars <= denseChars
	}
	joint := func(w string) bool { return slices.Contains(letters, w) }
	return len(words) > 1 && len(words) <= questionWords && chars <= questionChars && !slices.ContainsFunc(words, joint)
}

// dense reports whether a word is of a script that puts no spaces between words.
func dense(word string) bool {
	return strings.ContainsFunc(word, func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
	})
}

// heavy reports whether a word suggests more than one plain step.
func heavy(word string) bool {
	if joints[word] || labour[word] {
		return true
	}
	for _, prefix := range [...]string{"و", "ו"} { // Arabic and Hebrew write "and" as the first letter of the next word
		if strings.HasPrefix(word, prefix) {
			return true
		}
	}
	return slices.ContainsFunc(pieces, func(piece string) bool { return strings.Contains(word, piece) })
}

// list returns the set of the words of a text.
func list(words string) map[string]bool { return set(strings.Fields(words)) }

// joints are words that join steps or things, in several languages.
var joints = list(`
	and or then after afterwards before while also plus both each every all several multiple various first next
	finally lastly once until versus vs step steps including based unless if whether together between
	und oder dann danach anschließend sowie jeweils alle erst zuerst zwischen
	et ou puis ensuite après avant chaque tous toutes ainsi entre
	luego después antes cada todos todas además entre também depois cada
	ed poi quindi dopo prima ogni tutti tutte tra
	en dan daarna elke alle og och så derefter ja sitten sekä oraz potem następnie każdy między
	ve sonra és majd și apoi và dan lalu kemudian και μετά и или затем потом каждый все между та або потім और फिर तथा
`)

// letters are words of one letter that join in some language. English has some
// of them for other purposes.
var letters = strings.Fields("a e i o u y а и і й")

// labour are words for work that takes steps, or for what only the caller has.
var labour = list(`
	our my their we us research investigate explore analyse analyze analysis study review evaluate assess audit benchmark
	compare comparison contrast difference differences advantages disadvantages pros cons alternatives options trends
	market competitors strategy roadmap plan plans proposal report reports essay article documentation documents document
	design build develop implement create code codebase repository program app application website service api database
	refactor test tests deploy debug fix migrate automate data dataset file files table slides presentation budget schedule
	markt bericht marché rapport mercado informe relatório mercato rapporto отчёт отчет рынок raport rynek
`)

// pieces are the same within words of scripts that do not set words apart.
var pieces = []string{
	"和", "与", "與", "并", "及", "再", "然后", "然後", "比较", "比較", "研究", "分析", "调研", "調査", "報告", "报告", "计划", "計画", "设计", "設計", "写", "寫", "每", "各",
	"と", "そして", "また", "して", "から", "และ", "แล้ว", "하고", "그리고", "보고서", "비교",
}

// english are small words by which a text is known to be English.
var english = list("the an of for with to it this that these those why how do does did can could would should will has have there you your make need")

// starts are beginnings of plain questions and orders.
var starts = func() map[string]bool {
	in := list("who where when which translate define spell convert calculate compute summarise summarize capitalise capitalize")
	for start := range strings.SplitSeq("what is,what are,what was,what were,what's,what does,what did,what time,what year,what day,what colour,what color,"+
		"how many,how much,how old,how tall,how far,how long,how big,how high,how deep,how heavy,"+
		"name the,name a,name one,list the,say hello,write a haiku,write a limerick,write a poem,write a joke,write one sentence,tell me a,tell a joke", ",") {
		in[start] = true
	}
	return in
}()
