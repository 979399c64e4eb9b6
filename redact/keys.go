package redact

import "strings"

// keyDetectors find private keys. A public key or a certificate is none.
var keyDetectors = []detector{
	{name: "pem", anchors: []anchor{{"-", "-", "-"}}, find: findArmor},
	{name: "putty", anchors: []anchor{{"P", "r", "i"}}, find: findPuTTY},
	{name: "openssh body", anchors: []anchor{{"b", "3", "B"}}, find: findOpenSSHBody},
}

const (
	armorBegin = "BEGIN "
	armorEnd   = "-----END "
	maxLabel   = 80  // bytes between BEGIN and the dashes behind it
	maxLine    = 512 // bytes of one line that are looked at together
	solid      = 16  // a line of base64 at least this long is key material
)

// endMark remembers where the next "-----END " stands, so that many BEGINs without one are searched for it once.
type endMark struct {
	known    bool
	from, at int // the first at or behind from is at; -1 for none
}

func (s *scan) nextEnd(i int) int {
	m := &s.armorEnd
	if m.known && i >= m.from && (m.at < 0 || i <= m.at) {
		return m.at
	}
	s.work += len(s.text) - i
	at := strings.Index(s.text[i:], armorEnd)
	if at >= 0 {
		s.work -= len(s.text) - i - at
		at += i
	}
	*m = endMark{true, i, at}
	return at
}

// findArmor finds -----BEGIN … PRIVATE KEY----- with what follows, to the END line if there is one (RFC 7468, RFC 4880
// 6.2; "---- BEGIN" as SSH2 writes it). Line breaks may be real, written as \n, or lost; lines may be quoted or indented.
func findArmor(s *scan, i int) int {
	if at(s.text, i-1, dashChar) { // in the middle of a rule of dashes
		return i
	}
	k := s.runEnd(i, dashChar, i+maxLabel)
	if has(s.text, k, " ") {
		k++
	}
	if !has(s.text, k, armorBegin) {
		return i
	}
	k += len(armorBegin)
	label := s.text[k:min(k+maxLabel, len(s.text))]
	s.work += len(label)
	dashes := strings.Index(label, "----")
	if dashes < 0 || !strings.Contains(label[:dashes], "PRIVATE KEY") {
		return i
	}
	body := s.runEnd(k+dashes, dashChar, len(s.text))
	end, ok := s.armored(body)
	if !ok {
		return i
	}
	s.hit(kindKey, i, end)
	return end
}

// armored returns the end of the key material that begins at body, and whether there is any.
func (s *scan) armored(body int) (end int, ok bool) {
	stop := s.nextEnd(body)
	if stop >= 0 {
		again := strings.Index(s.text[body:stop], "-----"+armorBegin)
		if again < 0 && (s.material(body, stop) || s.block(body, stop)) {
			line := stop + len(armorEnd)
			label := s.text[line:min(line+maxLabel, len(s.text))]
			if dashes := strings.Index(label, "-----"); dashes >= 0 && !strings.ContainsAny(label[:dashes], "\r\n") {
				return line + dashes + len("-----"), true
			}
			return line, true
		}
		s.work += max(again, 0)
	}
	return s.lines(body)
}

// material reports a solid run of base64 in text[from:to].
func (s *scan) material(from, to int) bool {
	for k := from; k < to; k++ {
		end := s.runEnd(k, base64Char, to)
		if end-k >= solid && keyLike(s.text[k:min(end, k+64)]) {
			return true
		}
		k = end
	}
	return false
}

// block reports a short body in lines of its own, each one run of base64: too short for a key, but in the place of one.
func (s *scan) block(from, to int) bool {
	if to-from > 16*solid || !has(s.text, from, "\n") && !has(s.text, from, "\r") && !has(s.text, from, `\n`) {
		return false
	}
	found := false
	for k := from; k < to; {
		start, end, next := s.line(k)
		start, end = min(start, to), min(end, to)
		if start < end && s.runEnd(start, base64Char, end) != end {
			return false
		}
		if h := s.shape(s.text[start:end]); start < end && h.uppers+h.digits > 0 && !filler(h) {
			found = true
		}
		k = next
	}
	return found
}

// keyLike reports a run of base64 that is neither a word nor a mask.
func keyLike(run string) bool {
	h := shapeOf(run)
	return h.distinct >= 6 && !h.wordy() && !h.masked()
}

// lines returns the end of the lines of base64 that begin at body: an armor that lost its end.
func (s *scan) lines(body int) (end int, ok bool) {
	end = body
	for k := body; k < len(s.text); {
		from, to, next := s.line(k)
		content := s.text[from:to]
		s.work += next - k
		switch run := s.runEnd(from, base64Char, to); {
		case run == to && to-from >= solid:
			ok = ok || keyLike(content[:min(len(content), 64)])
			end = to
		case run == to && to > from && ok: // the last line; a word of prose is none
			if !shapeOf(content).wordy() {
				end = to
			}
			return end, true
		case !ok && to-from < solid*8 && (content == "" || strings.Contains(content, ": ")): // blank line or header before the body
		case !ok && run-from >= solid && keyLike(s.text[from:min(run, from+64)]): // the whole body on one line, more behind it
			return s.runEnd(run, base64Char, len(s.text)), true
		default:
			return end, ok
		}
		if !ok && next-body > 2048 {
			return end, false
		}
		k = next
	}
	return end, ok
}

// line returns the content of the line at k without its indentation, quotes and comment marks, and where the next
// line begins. A longer line comes in pieces.
func (s *scan) line(k int) (from, to, next int) {
	limit := min(k+maxLine, len(s.text))
	to, next = limit, limit
	for i := k; i < limit; i++ {
		if s.text[i] == '\n' {
			to, next = i, i+1
			break
		}
		if s.text[i] == '\\' && i+1 < limit && (s.text[i+1] == 'n' || s.text[i+1] == 'r') {
			to, next = i, i+2
			break
		}
	}
	const margin = " \t\r\"'`>#*+,;\\"
	for from = k; from < to && strings.IndexByte(margin, s.text[from]) >= 0; from++ {
	}
	for to > from && strings.IndexByte(" \t\r\"'`,;\\", s.text[to-1]) >= 0 {
		to--
	}
	return from, to, next
}

// findPuTTY finds the private lines of a PuTTY key file.
func findPuTTY(s *scan, i int) int {
	const mark = "Private-Lines:"
	if !has(s.text, i, mark) {
		return i
	}
	k := s.runEnd(i+len(mark), blankChar, i+len(mark)+8)
	k = s.runEnd(k, digitChar, k+8)
	end, ok := s.lines(k)
	if !ok {
		return i
	}
	s.hit(kindKey, k, end)
	return end
}

// findOpenSSHBody finds the base64 of "openssh-key-v1\0", the body of an OpenSSH key that lost its BEGIN line.
func findOpenSSHBody(s *scan, i int) int {
	if !has(s.text, i, "b3BlbnNzaC1rZXktdjE") {
		return i
	}
	end, ok := s.lines(i)
	if !ok {
		return i
	}
	s.hit(kindKey, i, end)
	return end
}
