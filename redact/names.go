package redact

import "strings"

// A nameClass says how likely the name of a value makes it a secret.
type nameClass uint8

const (
	noName   nameClass = iota
	weakName           // token, credential, some_key: secret if the value looks random
	firmName           // api key, client secret: secret if the value is anything but words
	wordName           // password: secret unless the value is a word of prose or code
)

// lower returns the class of a value that is nested below a name of class c, or at some distance
// from it.
func (c nameClass) lower() nameClass {
	if c > weakName {
		return c - 1
	}
	return c
}

// maxName bounds how far before a value its name may begin.
const maxName = 64

// classify returns the class of a name, which may be several words in any of the usual spellings:
// dbPassword, DB_PASSWORD, "client secret", x-api-key.
func classify(name string) nameClass {
	if len(name) > maxName {
		name = name[len(name)-maxName:]
	}
	if c := foreignNames.class(name); c != noName {
		return c
	}
	var room nameWords
	flat, ends := room.split(name)
	return classifyWords(flat, ends, strings.IndexByte(name, '_') > 0 && capital(name))
}

// nameWords is the room for the words of a name.
type nameWords struct {
	flat [maxName]byte
	ends [maxName / 2]int
}

// split returns the letters of a name of at most maxName bytes in lower case, and where in them
// each word ends. Capitals and bytes other than ASCII letters separate words.
func (w *nameWords) split(name string) (flat []byte, ends []int) {
	words, n := 0, 0
	open := false // a word has begun at w.flat[w.ends[words-1]]
	for i := 0; i < len(name) && words < len(w.ends); i++ {
		b := name[i]
		if !is(b, letterChar) {
			if open {
				w.ends[words], words, open = n, words+1, false
			}
			continue
		}
		if open && is(b, upperChar) && (is(name[i-1], lowerChar) || at(name, i+1, lowerChar) && is(name[i-1], upperChar)) {
			w.ends[words], words = n, words+1
		}
		if words == len(w.ends) {
			break
		}
		w.flat[n], n, open = toLower(b), n+1, true
	}
	if open && words < len(w.ends) {
		w.ends[words], words = n, words+1
	}
	return w.flat[:n], w.ends[:words]
}

// classifyWords looks for the last secret-like word. Words after it may take the meaning away
// (password_hint), and so may words before it (next_page_token). constant means that the name is
// written like an environment variable.
func classifyWords(flat []byte, ends []int, constant bool) nameClass {
	start := func(k int) int {
		if k == 0 {
			return 0
		}
		return ends[k-1]
	}
	for k := len(ends) - 1; k >= 0; k-- {
		w := flat[start(k):ends[k]]
		c := classifyWord(w)
		if c == noName && string(w) == "key" {
			c = keyClass(flat, ends[:k+1], constant)
		}
		if k > 0 && c < wordName {
			c = max(c, classifyPair(flat[start(k-1):ends[k-1]], w))
		}
		if c != noName {
			for q := range k {
				if disarmsBefore(flat[start(q):ends[q]], q == k-1) {
					return noName
				}
			}
			if k < len(ends)-1 {
				return c.lower()
			}
			return c
		}
		if afterSecret[string(w)] {
			return noName
		}
	}
	return noName
}

// classifyPair returns the class of two words that mean more together.
func classifyPair(first, second []byte) nameClass {
	switch {
	case string(second) == "phrase" && string(first) == "pass":
		return wordName
	case string(second) == "pass" || string(second) == "pw": // DB_PASS
		return wordName
	case string(second) == "api" && string(first) == "art": // X-JFrog-Art-Api
		return firmName
	}
	return noName
}

// classifyWord returns the class of one word, in lower case.
func classifyWord(w []byte) nameClass { return secretWords.class(text(w)) }

// secretWords may be at the end of words that are written together (dbpassword, mysqlpwd,
// bottoken), but for those with =.
var secretWords = endingsOf(map[nameClass]string{
	wordName: "password,passwd,pwd,passphrase,=passwords,=passwort,=kennwort,=passcode,=pswd,=senha,=wachtwoord,=passord,=motdepasse,=psk",
	firmName: "secret,apikey,secretkey,accesskey,privatekey,accountkey,encryptionkey,signingkey,masterkey,subscriptionkey," +
		"=pass,=pw,=apitoken,=authtoken,=accesstoken,=clientsecret",
	weakName: "token,=secrets,=credential,=credentials,=creds,=cred,=auth,=authorization,=apikeys,=authkey,=jsessionid,=phpsessid,=otp,=totp",
})

// keyWords are the words before "key" that make it the name of a secret.
var keyWords = wordSet("api access secret private encryption signing master account shared subscription auth admin root security crypto " +
	"aes hmac jwt recovery encrypt decryption signature symmetric license client consumer service storage app " +
	"application integration webhook session cookie authentication authorization")

// keyClass returns the class of the word "key" by the word before it: "key" alone is an index of a
// map.
func keyClass(flat []byte, ends []int, constant bool) nameClass {
	k := len(ends) - 1
	if k == 0 {
		return noName
	}
	start := 0
	if k > 1 {
		start = ends[k-2]
	}
	if keyWords[string(flat[start:ends[k-1]])] {
		return firmName
	}
	if constant {
		return weakName
	}
	return noName
}

// beforeSecret are the words right before a secret-like one that take its meaning away.
var beforeSecret = wordSet("page continuation sync delta cursor cancel cancellation pagination resume max min num total completion eos bos " +
	"pad unk mask sep cls stop primary foreign partition sort cache idempotency object row hash map lookup index " +
	"group unique composite routing dedup dedupe site host forgot forgotten invalid wrong missing no has is show hide " +
	"toggle requires require needs use uses validate without get fetch load read find delete remove getenv " +
	"translation message i18n next")

// disarmsBefore reports whether w, a word before a secret-like one that takes its meaning away.
// next means that it directly precedes.
func disarmsBefore(w []byte, next bool) bool {
	switch string(w) {
	case "public", "publishable", "pubkey":
		return true
	}
	return next && beforeSecret[string(w)]
}

// afterSecret are the words after a secret-like one that name something else about it.
var afterSecret = wordSet("hint hints policy policies length len size min max count counts file files filename path paths dir directory url " +
	"urls uri endpoint href link type types kind name names id ids identifier expiry expires expire expiration " +
	"expired exp ttl age lifetime timeout field fields label title header prefix reset strength error errors required " +
	"require requirements validity valid invalid enabled disabled version algorithm alg rotation manager provider " +
	"store source ref reference arn vault limit limits usage used cost price budget rate index position pos offset " +
	"start end stream parser generator class function func callback handler method validator encoder decoder " +
	"placeholder description desc help prompt question input button form page column table scope scopes status state " +
	"created updated at date time changed attempts retry retries mismatch matches match contract address symbol " +
	"supply bucket buckets spec schema properties options option settings mode style format model username user login " +
	"email domain host port region realm owner issuer audience on in of by is was or and to be")

// foreignNames are names in scripts without letters of ASCII, or with some beyond it; each is at
// the end of a name.
var foreignNames = endingsOf(map[nameClass]string{
	wordName: "пароль,Пароль,ПАРОЛЬ,密码,密碼,口令,パスワード,비밀번호,암호,סיסמה,סיסמא,ססמה,كلمة المرور,كلمة السر,contraseña,Contraseña," +
		"mật khẩu,hasło,Hasło,şifre,Şifre,รหัสผ่าน,κωδικός",
	firmName: "秘钥,密钥,密鑰",
	weakName: "токен,Токен,トークン,令牌",
})
