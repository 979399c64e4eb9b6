package redact

import (
	"maps"
	"strings"
	"sync"
	"unicode/utf8"
)

// A kindSet is the set of kinds that the key of a member names. For detectors of these
// kinds, the key replaces the word that would have to be next to the value in a text.
type kindSet uint16

const (
	namesCard kindSet = 1 << iota
	namesIBAN
	namesEmail
	namesPhone
	namesMobile // a phone, by a word that is also used for counts of visitors
	namesSSN
	namesIP
	namesMAC
	namesJWK // a private member of a JSON Web Key
)

// kindWords maps words that name the kind of a value, in lower case. Two words of a name may be
// written as one.
var kindWords = sync.OnceValue(func() map[string]kindSet {
	t := map[string]kindSet{}
	for word, cue := range cues() {
		if cue == phoneCue && word != "cep" && word != "sms" { // postal codes of Brazil, counts of messages
			t[word] = namesPhone
		}
	}
	maps.Copy(t, wordTable(map[kindSet]string{
		namesCard:   "card cards cc pan creditcard creditcards debitcard cardnumber cardnumbers cardno cardnum ccnumber ccnum ccno kreditkarte kartennummer tarjeta carta maestro visa",
		namesIBAN:   "iban ibans account accounts accountnumber accountno accountnum acct bankaccount konto kontonummer kontonr cuenta compte conto rekening",
		namesEmail:  "email emails mail mails emailaddress emailaddresses mailaddress emailaddr mailto correo courriel",
		namesMobile: "mobile mobiles mobil mob cell cells cellular celular celulare gsm handy portable hotline pager",
		namesSSN:    "ssn ssns ssnum ssno ssnumber ssnnumber socialsecurity socialsecuritynumber socialsecurityno socsec",
		namesIP:     "ip ips ipaddress ipaddresses ipaddr ipv inet addr host listen bind gateway",
		namesJWK:    "d k p q dp dq qi",
		namesMAC:    "mac macs macaddress macaddresses macaddr hwaddr hwaddress lladdr ethernetaddress bssid",
	}))
	return t
})

// kindsNamedBy returns the kinds that a key names. Its last word that is no addition decides, alone
// or with the word before it. If every word is an addition (number, value, work), the keys around
// the object decide.
func kindsNamedBy(key string) (keyKinds kindSet, addition bool) {
	if len(key) > maxName {
		return 0, false
	}
	var room nameWords
	flat, ends := room.split(key)
	for k := len(ends) - 1; k >= 0; k-- {
		from, before := 0, 0
		if k > 0 {
			from = ends[k-1]
		}
		if k > 1 {
			before = ends[k-2]
		}
		keyKinds = kindWords()[string(flat[from:ends[k]])]
		if k > 0 && keyKinds == 0 {
			keyKinds = kindWords()[string(flat[before:ends[k]])]
		}
		if keyKinds != 0 {
			if counted(flat, ends[:k]) {
				return 0, false
			}
			return keyKinds, false
		}
		if !additions[string(flat[from:ends[k]])] {
			return foreignKinds(key), false
		}
	}
	keyKinds = foreignKinds(key)
	return keyKinds, keyKinds == 0
}

// foreignKinds is kindsNamedBy for words beyond ASCII.
func foreignKinds(key string) kindSet {
	for i := range len(key) {
		if key[i] >= utf8.RuneSelf {
			if cueOf(strings.TrimRight(key, digits)) == phoneCue {
				return namesPhone
			}
			return 0
		}
	}
	return 0
}

// counts are words before the one that names a kind that make the value another one: isPhone,
// maxCards.
var counts = wordSet("is has num count total max min avg hash hashed without")

// counted reports whether one of the words that end at ends is one of counts.
func counted(flat []byte, ends []int) bool {
	from := 0
	for _, end := range ends {
		if counts[string(flat[from:end])] {
			return true
		}
		from = end
	}
	return false
}

// additions are words that may follow a word that names a kind, or be a key of their own in an
// object below it.
var additions = wordSet("number numbers num nr no nos value values val raw text string plain full formatted normalized canonical e " +
	"national international primary secondary main alternate alternative alt other old new current previous default " +
	"first second home work office private personal business contact direct emergency day night evening us uk local " +
	"remote public")

// keyNames reports whether the key of the leaf names one of kinds. Long texts are prose, whatever
// their key.
func (p *pass) keyNames(kinds kindSet) bool {
	return p.location.keyKinds&kinds != 0 && len(p.text) <= maxLook
}

// applyLeafRules applies the rules for whole leaves to a leaf whose key names a kind.
func (r *Redactor) applyLeafRules(s *scan) {
	from, to := 0, len(s.text)
	for from < to && is(s.text[from], whitespaceChar) {
		from++
	}
	for to > from && is(s.text[to-1], whitespaceChar) {
		to--
	}
	if to == from || to-from > maxLook {
		return
	}
	s.work += to - from
	for _, d := range r.leaves {
		if s.keyNames(d.named) && d.leaf(s.text[from:to], s.location.number) {
			s.hit(d.kind, from, to)
		}
	}
}
