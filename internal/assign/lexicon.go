package assign

// A lexicon numbers words from 0.
type lexicon struct {
	ids      map[word]int32
	function []uint32 // of each word, see [functionWords]
}

// get returns the number of a word that is there and, with this many letters,
// no function word.
func (l *lexicon) get(w word, letters int) (id int32, ok bool) {
	id, ok = l.ids[w]
	return id, ok && l.function[id]>>letters&1 == 0
}

// put returns the number of a word, a new one if it is not there.
func (l *lexicon) put(w word) int32 {
	id, ok := l.ids[w]
	if !ok {
		id = int32(len(l.function))
		l.ids[w], l.function = id, append(l.function, functionWords[w])
	}
	return id
}
