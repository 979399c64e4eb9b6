package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	KindRunEnd        = "end"
	KindMessage       = "message"
	KindSealed        = "sealed" // the words of the prompt before it that are above the plaintext limit
)

// EncodeLine returns a line with its line feed. The JSON in the value is written
// unchanged: characters of HTML are not escaped.
func EncodeLine(kind string, value any) ([]byte, error) {
	text := bytes.NewBufferString(`{"` + kind + `":`)
	if err := encode(text, value); err != nil {
		return nil, err
	}
	line := text.Bytes()
	line[len(line)-1] = '}' // the line feed
	if n := len(line); n > MaxLine {
		return nil, fmt.Errorf("a line of %d bytes would be longer than %d", n, MaxLine)
	}
	return append(line, '\n'), nil
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

// SplitLine returns the kind and the value of a line of one member, as [EncodeLine] wrote
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

// ErrLongLine reports a line that [EncodeLine] did not write.
var ErrLongLine = fmt.Errorf("it is longer than %d bytes", MaxLine)

// ReadLine appends the next line to buf, with its line feed. It reads at most [MaxLine]
// bytes of it, so that an endless line does not fill the memory. The error is [io.EOF] if
// the line feed is missing, also of a line that was cut off.
func ReadLine(in *bufio.Reader, buf []byte) ([]byte, error) {
	for {
		part, err := in.ReadSlice('\n')
		buf = append(buf, part...)
		switch {
		case len(bytes.TrimSuffix(buf, []byte("\n"))) > MaxLine:
			return nil, ErrLongLine
		case !errors.Is(err, bufio.ErrBufferFull):
			return buf, err
		}
	}
}

// DecodeStrict decodes one JSON value, and refuses keys that it does not know and
// anything behind the value.
func DecodeStrict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if rest := text[d.InputOffset():]; len(bytes.TrimSpace(rest)) > 0 {
		return errors.New("something follows it")
	}
	return nil
}
