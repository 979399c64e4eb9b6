package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
)

// MaxLine is how many bytes a line has at most, without its line feed.
const MaxLine = 16 << 20

// The kinds of lines. A line is an object of one member, its kind; a line of the chain
// of decisions has a digest too.
const (
	KindTrace    = "trace" // the first line
	KindDecision = "audit"
	KindEvent    = "event"
	KindPrompt   = "prompt"
	KindPart     = "part" // of a result that is too long for a line
	KindResult   = "result"

	// Only a journal has these.
	KindInfo          = "info"
	KindRunStart      = "begin"
	KindCallStart     = "asked"
	KindPrefetchStart = "begun"
	KindAgentCall     = "exchange"
	KindRejected      = "rejected" // an agent call whose answer must be corrected
	KindTurn          = "turn"     // what an agent said in a turn that is not its last
	KindToolStart     = "toolcall" // a tool is about to be called
	KindFiles         = "files"    // the output files of a task
	KindToolEnd       = "toolend"  // and this came of it
	KindQuestion      = "question" // a person is asked
	KindAnswer        = "answer"   // and answered while no process worked on the run
	KindCommand       = "command"  // somebody steers the run
	KindRunEnd        = "end"
	KindMessage       = "message"
	KindSealed        = "sealed" // the words of the prompt before it that are above the plaintext limit
)

// AppendLine adds a line with its line feed to a buffer, or nothing if there is an error.
// The JSON in the value stands as it is: characters of HTML are not escaped.
func AppendLine(to *bytes.Buffer, kind string, value any) error {
	from := to.Len()
	to.WriteString(`{"` + kind + `":`)
	err := encode(to, value)
	if n := to.Len() - from; err == nil && n > MaxLine {
		err = fmt.Errorf("a line of %d bytes would be longer than %d", n, MaxLine)
	}
	if err != nil {
		to.Truncate(from)
		return err
	}
	to.Bytes()[to.Len()-1] = '}' // the line feed of the encoder
	return to.WriteByte('\n')
}

// EncodeText returns a value as JSON, with the JSON in it unchanged.
func EncodeText(value any) ([]byte, error) {
	var text bytes.Buffer
	err := encode(&text, value)
	return text.Bytes(), err
}

func encode(into *bytes.Buffer, value any) error {
	e := json.NewEncoder(into)
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// LinePrefix is how lines of a kind begin.
func LinePrefix(kind string) []byte { return []byte(`{"` + kind + `":`) }

// SplitLine returns the kind and the value of a line of one member, as [AppendLine] wrote
// it. The kind of another line is empty.
func SplitLine(line []byte) (kind string, value []byte) {
	line = bytes.TrimRight(line, "\n")
	rest, ok := bytes.CutPrefix(line, []byte(`{"`))
	name, rest, found := bytes.Cut(rest, []byte(`":`))
	value, whole := bytes.CutSuffix(rest, []byte("}"))
	if !ok || !found || !whole {
		return "", nil
	}
	return string(name), value
}

// SplitLines yields the kind and the value of each line of a text; see [SplitLine].
func SplitLines(text []byte) iter.Seq2[string, []byte] {
	return func(yield func(kind string, value []byte) bool) {
		for line := range bytes.Lines(text) {
			if !yield(SplitLine(line)) {
				return
			}
		}
	}
}

// ErrLongLine reports a line that [AppendLine] did not write.
var ErrLongLine = fmt.Errorf("it is longer than %d bytes", MaxLine)

// ErrTorn reports a last line that was cut off.
var ErrTorn = errors.New("the last line has no line feed")

// Lines yields the lines of a file, each with its line feed, which the caller may keep. An
// error ends them: [ErrLongLine], [ErrTorn] with the text of the line, or one of reading. At
// most [MaxLine] bytes of a line are read, so that an endless one does not fill the memory.
func Lines(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		for {
			line, err := readLine(in)
			if err == io.EOF && len(line) > 0 {
				err = ErrTorn
			}
			if err == io.EOF || !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// readLine reads the next line. The error is [io.EOF] if the line feed is missing.
func readLine(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(bytes.TrimSuffix(line, []byte("\n"))) > MaxLine:
			return nil, ErrLongLine
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// DecodeStrict decodes one JSON value, and refuses keys that it does not know and
// anything behind the value.
func DecodeStrict(text []byte, into any) error {
	d := strictDecoders.Get().(*strictDecoder)
	before := d.json.InputOffset()
	d.text.Reset(text)
	if err := d.json.Decode(into); err != nil {
		return err // nothing is known of what the decoder still has
	}
	rest := text[d.json.InputOffset()-before:]
	if len(rest) == 0 && len(text) <= maxPooled {
		strictDecoders.Put(d)
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return errors.New("something follows it")
	}
	return nil
}

// maxPooled is the most bytes of a value whose decoder is used again.
const maxPooled = 1 << 20

// strictDecoders is a pool, since a decoder needs a buffer for the longest value.
var strictDecoders = sync.Pool{New: func() any {
	d := &strictDecoder{text: bytes.NewReader(nil)}
	d.json = json.NewDecoder(d.text)
	d.json.DisallowUnknownFields()
	return d
}}

// A strictDecoder decodes one value after the other.
type strictDecoder struct {
	text *bytes.Reader
	json *json.Decoder
}
