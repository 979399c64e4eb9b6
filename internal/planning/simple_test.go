package planning_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/planning"
)

func TestSimple(t *testing.T) {
	t.Parallel()
	plain := []string{
		"What is the capital of France?",
		"what is the boiling point of water at sea level",
		"Who wrote Middlemarch?",
		"When did the Berlin Wall fall?",
		"Where is the Strait of Hormuz?",
		"Which planet has the most moons?",
		"How many moons does Jupiter have?",
		"How tall is Mount Kenya?",
		"What's the square root of 144?",
		"Translate \"good morning\" into Japanese.",
		"Define entropy in one sentence.",
		"Convert 10 miles to kilometres.",
		"Calculate 17 percent of 2340.",
		"Spell onomatopoeia",
		"Tell me a joke about penguins!",
		"Write a haiku about rain.",
		"Summarise the plot of Hamlet in one sentence.",
		"  List the planets of the solar system.  ",
		// other languages: one short question
		"Was ist die Hauptstadt von Frankreich?",
		"¿Cuál es la capital de Francia?",
		"Quelle est la capitale de la France ?",
		"Qual è la capitale della Francia?",
		"Где находится Байкал?",
		"日本の首都はどこですか？",
		"法国的首都是什么？",
		"프랑스의 수도는 어디입니까?",
		"ما هي عاصمة فرنسا؟",
	}
	planned := []string{
		"", "   ", "?", "¿?", "what is", "Help", "Hello there",
		"Research the market and write a report.",
		"Compare Postgres with MySQL.",
		"What is the capital of France, and how many people live there?",
		"What is the capital of France? How many people live there?",
		"Translate this into French. Then send it to Anna.",
		"What are the pros of nuclear power or of wind?",
		"Write a blog post about our new product",
		"Design a logo.",
		"Build me a todo app",
		"Analyse the attached figures",
		"What are the differences between Go versions?",
		"What is our churn rate?",
		"Which vendors should we choose?",
		"List the planets:\n- inner\n- outer",
		"Step 1: read the claim. Step 2: decide.",
		"Find three suppliers; rank them",
		"Plan a trip to Rome",
		"Why did sales drop last quarter?",
		"Is the contract sound?",
		"How do I move to a new bank?",
		"Summarise the report (both parts)",
		"Define entropy - briefly",
		"What is 1/2 of 3?", // a slash may join two things
		"What is the name of the person who wrote the book that was read by the man who lived there long ago?",
		"What is " + strings.Repeat("so ", 40) + "long?",
		"What is\u202e this?", "What is \x00 this?", "What is \xff this?", "What is this?\nAnd that?",
		// other languages
		"Recherchiere den Markt und schreibe einen Bericht.",
		"Schreibe einen Bericht über den Markt.", // one sentence, but no question
		"Kannst du recherchieren und dann schreiben?",
		"Étudie le marché puis rédige un rapport",
		"Peux-tu étudier le marché et rédiger un rapport ?",
		"Investiga el mercado y escribe un informe",
		"¿Puedes investigar y escribir?",
		"Zbadaj rynek i napisz raport",
		"Czy możesz zbadać rynek i napisać raport?",
		"Исследуй рынок и напиши отчёт",
		"Можешь исследовать рынок и написать отчёт?",
		"调研竞争对手并写一份报告",
		"你能调研竞争对手然后写报告吗？",
		"这个产品在今年的市场上到底有没有任何成功的机会呢？",
		"市場を調査して報告書を書いてください。",
		"調査して書けますか？",
		"조사하고 보고서를 쓸 수 있나요?",
		"هل يمكنك البحث وكتابة تقرير؟",
		"האם תוכל לחקור ולכתוב?",
		"Bisakah kamu meneliti pasar lalu menulis laporan?",
		"Ist das gut? Und das?",
		"Wieso ist das Wetter in den Bergen im Winter immer so schlecht?",
	}
	for _, goal := range plain {
		require.True(t, planning.Simple(goal), "%q", goal)
	}
	for _, goal := range planned {
		require.False(t, planning.Simple(goal), "%q", goal)
	}
}

// TestSimpleIsNeverLong checks the bounds for any text, and that two simple goals
// together are not simple.
func TestSimpleIsNeverLong(t *testing.T) {
	t.Parallel()
	words := rapid.SampledFrom([]string{"what", "is", "who", "define", "und", "and", "the", "capital", "首都", "wo", "?", ".", "y", "\n", "של", "Rome", "translate", "name the", "¿"})
	rapid.Check(t, func(t *rapid.T) {
		goal := strings.Join(rapid.SliceOfN(words, 0, 24).Draw(t, "words"), " ")
		if !planning.Simple(goal) {
			return
		}
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSpace(goal)), 100)
		require.LessOrEqual(t, len(strings.Fields(goal)), 24)
		for _, joined := range []string{goal + ". " + goal, goal + " and " + goal, goal + "\n" + goal, goal + ", " + goal} {
			require.False(t, planning.Simple(joined), "%q", joined)
		}
	})
}

func TestSimpleIsFast(t *testing.T) {
	t.Parallel()
	require.False(t, planning.Simple(strings.Repeat("what is ", 1<<20)))
	require.False(t, planning.Simple(strings.Repeat("?", 1<<20)))
}
