package redact

import (
	"maps"
	"strings"
	"sync"
	"unicode/utf8"
)

// A cue is what a word before a number implies about it.
type cue uint8

const (
	noCue    cue = iota
	phoneCue     // phone, fax, mobile
	callCue      // call, dial
	linkCue      // number, is, at: what may be between
)

// cues has words of the usual languages, in lower case; cueOf ignores the case of ASCII, and
// accepts other words as they begin a sentence.
var cues = sync.OnceValue(func() map[string]cue {
	t := wordTable(map[cue]string{
		phoneCue: "tel tél tlf tfn mobile mobil mob cell cellular celular celulare cep gsm handy fax telefax landline hotline portable móvil movil cellulare " +
			"telemóvel telemovel puhelin kontaktnummer rufnummer sms viber pager msisdn phone phones phoneno phonenr phonenumber phonenumbers telephone telephones " +
			"telephonenumber telefon telefone telefono telefonnummer telefonnr telefonnumber telefoon telefoonnummer telefono teléfono téléphone telnum telno telnr " +
			"cellphone cellnum cellnumber cellno mobilephone mobilenumber mobilenum mobileno mobilnummer mobilnr mobiltelefon handynummer homephone workphone " +
			"officephone businessphone contactphone contactnumber phonehome phonework phonemobile faxnumber faxnum faxno whatsapp hometel worktel hometelephone worktelephone " +
			"телефон телефона тел моб мобильный факс τηλέφωνο τηλ κινητό 電話 電話番号 携帯 携帯電話 电话 電話號碼 电话号码 手机 手機 手机号 传真 전화 전화번호 휴대폰 טלפון נייד פקס هاتف جوال الهاتف",
		callCue: "call dial ring appeler appelez anrufen llamar llame ligar chiamare bel ara",
		linkCue: "number numbers num nr no nos n is at on me us him her them my the our your or und and to now work home office new please ist est es é " +
			"numéro numero número nummer lautet unter sous au al a numarası numaram uri via was are ext contact direct main emergency",
	})
	for word, what := range maps.Clone(t) {
		if word[0] >= utf8.RuneSelf {
			t[strings.ToUpper(word)] = what
			t[string([]rune(strings.ToUpper(word))[:1])+string([]rune(word)[1:])] = what
		}
	}
	return t
})

// cueOf returns the cue of a word.
func cueOf(word string) cue {
	found := lookUp(cues(), word)
	if found == noCue && word != "" && len(word) <= maxWord && word[0] >= utf8.RuneSelf {
		for _, stem := range denseStems {
			if strings.Contains(word, stem) {
				return phoneCue
			}
		}
	}
	return found
}

// denseStems are words for telephones in scripts without spaces between words, or with particles at
// a word's end.
var denseStems = [...]string{"電話", "携帯", "电话", "手机", "手機", "传真", "傳真", "전화", "휴대폰"}
