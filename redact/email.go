package redact

// emailDetectors find addresses as RFC 5322 (3.4.1) writes them, with a domain that has a top-level domain.
var emailDetectors = []detector{{name: "email", anchors: []anchor{{"@", "", ""}}, find: findEmail}}

const (
	maxLocal  = 64  // bytes before the @, RFC 5321 4.5.3.1.1
	maxDomain = 253 // bytes behind it
)

// findEmail finds the address around the @ at i.
func findEmail(s *scan, i int) int {
	start := s.localStart(i)
	if start == i {
		return i
	}
	end := s.domainEnd(i + 1)
	if end == i+1 {
		return i
	}
	s.hit(Email, start, end)
	return end
}

// localStart returns where the local part that ends before i begins, or i if there is none.
func (s *scan) localStart(i int) int {
	k := i
	for k > 0 && i-k < maxLocal && atext(s.text[k-1]) {
		k--
	}
	s.work += i - k + 1
	if s.text[max(i-1, 0)] == '.' {
		return i
	}
	for k < i && s.text[k] == '.' {
		k++
	}
	return k
}

// atext reports a byte that an unquoted local part may have; bytes beyond ASCII are those of RFC 6531.
func atext(b byte) bool {
	return is(b, alnumChar) || b >= 0x80 || b == '.' || b == '_' || b == '-' || b == '+' || b == '%'
}

// domainEnd returns the end of the domain that begins at i, or i if there is none with two labels.
func (s *scan) domainEnd(i int) int {
	end, dots := i, 0
	k := i
	for k < len(s.text) && k-i < maxDomain {
		from := k
		for k < len(s.text) && k-from < 63 && (is(s.text[k], alnumChar|dashChar) || s.text[k] >= 0x80) {
			k++
		}
		if k == from {
			break
		}
		if dots > 0 && !is(s.text[from], digitChar) && k-from > 1 {
			end = k
		}
		if !at(s.text, k, dotChar) {
			break
		}
		k, dots = k+1, dots+1
	}
	s.work += k - i + 1
	return end
}
