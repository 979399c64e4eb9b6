package roles_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/roles"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
)

func init() {
	slowtest.Checks(25)
	slowtest.FilesInMemory()
}

var now = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

const digest = "52fdfc072182654f163f5f0f9a621d729566c74d10037c4d7bbb0407d1e2c649"

// parse reads a file that is valid.
func parse(t testing.TB, text string) *roles.Set {
	t.Helper()
	set, err := roles.Parse("roles.yaml", []byte(text), now)
	require.NoError(t, err)
	return set
}

// says returns problems on one line each, without excerpts.
func says(problems []specfile.Problem) string {
	var b strings.Builder
	for _, p := range problems {
		fmt.Fprintf(&b, "%s: %s; %s\n", p.At(), p.Message, p.Hint)
	}
	return strings.TrimSpace(b.String())
}

// problems returns what is wrong with a file.
func problems(t testing.TB, name, text string) string {
	t.Helper()
	set, err := roles.Parse(name, []byte(text), now)
	require.Error(t, err)
	require.Nil(t, set)
	found, ok := err.(*specfile.Error)
	require.True(t, ok, "%T", err)
	return says(found.Problems)
}

func TestGrantHasWhatTheFileSays(t *testing.T) {
	t.Parallel()
	set := parse(t, `
roles:
  - role: viewer
    users: [Ann@Example.org]
    groups: [auditors]
  - role: operator
    groups: [" auditors "]
    accepts: confidential
    specs: [claims, newsroom]
    runs: all
  - role: approver
    users: [carla@example.org]
    accepts: public
    as: [manager, legal counsel]
    self: true
`)
	viewer := roles.Grant{Role: roles.Viewer, Accepts: label.Internal}
	operator := roles.Grant{Role: roles.Operator, Accepts: label.Confidential, Specs: []string{"claims", "newsroom"}, All: true}
	approver := roles.Grant{Role: roles.Approver, Accepts: label.Public, As: []string{"manager", "legal counsel"}, Self: true}
	tests := []struct {
		name, person string
		groups       []string
		want         []roles.Grant
	}{
		{name: "a user", person: "ann@example.org", want: []roles.Grant{viewer}},
		{name: "another spelling of a user", person: " ANN@example.ORG", want: []roles.Grant{viewer}},
		{name: "a user in a group of the same role", person: "ann@example.org", groups: []string{"auditors"}, want: []roles.Grant{viewer, operator}},
		{name: "a group", person: "ben@example.org", groups: []string{"staff", " auditors"}, want: []roles.Grant{viewer, operator}},
		{name: "another group", person: "ben@example.org", groups: []string{"Auditors"}},
		{name: "an approver", person: "carla@example.org", want: []roles.Grant{approver}},
		{name: "a group is no user", person: "auditors"},
		{name: "a user is no group", person: "ben@example.org", groups: []string{"ann@example.org"}},
		{name: "nobody", person: "", groups: []string{"auditors"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, set.Grants(tt.person, tt.groups))
		})
	}
	require.Empty(t, set.Warnings)
}

func TestToken(t *testing.T) {
	t.Parallel()
	file := func(expires string) *roles.Set {
		return parse(t, fmt.Sprintf(`
roles:
  - {role: viewer, users: [ci@example.org], runs: all}
  - {role: operator, users: [CI@example.org], specs: [claims]}
  - {role: operator, groups: [robots]}
tokens:
  - {sha256: %X, user: Ci@example.org, role: operator, expires: %s}
`, sha256.Sum256([]byte("s3cret")), expires))
	}
	set := file("2027-03-31")
	token, ok := set.Token("s3cret", now)
	require.True(t, ok)
	require.Equal(t, roles.Token{
		ID: fmt.Sprintf("%x", sha256.Sum256([]byte("s3cret")))[:16], Person: "ci@example.org", Role: roles.Operator,
		Expires: time.Date(2027, 4, 1, 0, 0, 0, 0, time.UTC),
	}, token)
	require.Equal(t, []roles.Grant{{Role: roles.Operator, Accepts: label.Internal, Specs: []string{"claims"}}}, set.GrantsOf(token, now))
	require.Nil(t, set.GrantsOf(roles.Token{ID: token.ID, Person: "ann"}, now), "a session of somebody else")
	require.Nil(t, file("2027-03-31T18:00:00+02:00").GrantsOf(token, time.Date(2027, 3, 31, 16, 0, 0, 0, time.UTC)), "it ends earlier now")
	require.Nil(t, new(roles.Set).GrantsOf(token, now), "it was removed")

	for _, secret := range []string{"", "s3cret ", token.ID} {
		_, ok = set.Token(secret, now)
		require.False(t, ok, secret)
	}
	last := time.Date(2027, 3, 31, 23, 59, 59, 999, time.UTC)
	_, ok = set.Token("s3cret", last)
	require.True(t, ok, "the date is the last day")
	_, ok = set.Token("s3cret", last.Add(time.Second))
	require.False(t, ok)

	set = file("2027-03-31T18:00:00+02:00")
	_, ok = set.Token("s3cret", time.Date(2027, 3, 31, 15, 59, 59, 0, time.UTC))
	require.True(t, ok)
	_, ok = set.Token("s3cret", time.Date(2027, 3, 31, 16, 0, 0, 0, time.UTC))
	require.False(t, ok)
}

func TestBadFiles(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, file, give, want string }{
		{name: "empty", give: " \n", want: `roles.yaml: the file is empty; write roles: and tokens:`},
		{name: "comments alone", give: "# nothing\n", want: `roles.yaml:1:1: the file is empty; write roles: and tokens:`},
		{name: "a list", give: "- a\n", want: `roles.yaml:1:1: a list where the file of roles belongs; write {roles: …, tokens: …}`},
		{name: "no JSON", file: "roles.json", give: `{"roles": [}`, want: `roles.json:1:12: '}' where a value belongs;`},
		{name: "a tab", give: "roles:\n\t- role: viewer\n", want: `roles.yaml:2:1: tab used for indentation; use spaces`},
		{
			name: "shared values", give: "roles:\n- &a {role: viewer, users: [ann]}\n- {<<: 1, role: viewer}\n",
			want: `
roles.yaml:2:3: anchors and aliases are not supported; write the value out where it is needed; put a text that begins with & or * in quotes
roles.yaml:3:4: merge keys (<<) are not supported; write the keys out`,
		},
		{name: "no roles", give: "tokens: []", want: `roles.yaml:1:1: roles: it is missing; write roles: `},
		{name: "a misspelled key", give: "role:\n- {}\n", want: `roles.yaml:1:1: unknown key "role" in the file of roles; did you mean roles?`},
		{
			name: "a key twice", give: "roles: []\nroles: []\n",
			want: `roles.yaml:2:1: "roles": duplicate key; the first is in line 1, column 1; keep one of them`,
		},
		{
			name: "a role for nobody", give: "roles:\n- role: viewer\n- {role: viewer, user: [a]}\n- {role: viewer, users: []}\n- {}\n- ann\n",
			want: `
roles.yaml:2:3: roles[0]: it names nobody; write users: [ann@example.org] or groups: [auditors]
roles.yaml:3:18: roles[1]: unknown key "user" in a role; did you mean users?
roles.yaml:4:25: roles[2]: users: the list is empty; name at least one, or leave the key out
roles.yaml:5:3: roles[3]: role: it is missing; write role: viewer, operator or approver
roles.yaml:5:3: roles[3]: it names nobody; write users: [ann@example.org] or groups: [auditors]
roles.yaml:6:3: roles[4]: the text "ann" where a role belongs; write {role: …, users: …}`,
		},
		{
			name: "wrong words", give: "roles:\n- {role: Viewers, users: [a], runs: mine, accepts: intern}\n- {role: admin, users: [a], as: [b], accepts: secret}\n",
			want: `
roles.yaml:2:10: roles[0]: role: unknown word "Viewers"; did you mean viewer? known are viewer, operator, approver
roles.yaml:2:37: roles[0]: runs: unknown word "mine"; write one of own, all
roles.yaml:2:52: roles[0]: accepts: unknown word "intern"; did you mean internal? known are public, internal, confidential
roles.yaml:3:10: roles[1]: role: unknown word "admin"; write one of viewer, operator, approver
roles.yaml:3:47: roles[1]: accepts: unknown word "secret"; write one of public, internal, confidential`,
		},
		{
			name: "bad names", give: "roles:\n- role: viewer\n  users: [ann, Ann, \"\", a♥, [a]]\n- role: viewer\n  users: [ann, Ann, \"\", a♥, a  b]\n  groups: [g, \" g\", \"a\\nb\"]\n  specs: []\n",
			want: `
roles.yaml:3:29: roles[0]: users[4]: a list where a text belongs; put it in quotes
roles.yaml:5:16: roles[1]: users[1]: "Ann" is the same name as in line 5, column 11; keep one of them
roles.yaml:5:21: roles[1]: users[2]: it is empty; write one name
roles.yaml:5:25: roles[1]: users[3]: it has characters that names of people do not have, such as symbols or letters of both directions; write one name
roles.yaml:5:29: roles[1]: users[4]: it has two spaces in a row; write one name
roles.yaml:6:15: roles[1]: groups[1]: " g" is the same name as in line 6, column 12; keep one of them
roles.yaml:6:21: roles[1]: groups[2]: not one clean line: it has a line break (U+000A) at byte 1; write one name
roles.yaml:7:10: roles[1]: specs: the list is empty; name at least one, or leave the key out`,
		},
		{
			name: "persons", give: "roles:\n- {role: operator, users: [a], as: [manager], self: false}\n- {role: approver, users: [a], runs: all}\n- {role: approver, users: [a], runs: all, as: [user, \"-\"]}\n",
			want: `
roles.yaml:2:36: roles[0]: as: only an approver answers questions; remove it, or write role: approver
roles.yaml:2:53: roles[0]: self: only an approver answers questions; remove it, or write role: approver
roles.yaml:3:3: roles[1]: an approver needs to know as whom they answer; write as: [manager], with the agents of specs that are persons
roles.yaml:4:48: roles[2]: as[0]: reserved name user: choose another; write one name
roles.yaml:4:54: roles[2]: as[1]: not a name: it begins with '-': begin with a letter or a digit; write one name`,
		},
		{
			name: "tokens", give: `
roles: []
tokens:
- {}
- {sha256: s3cret, user: "", role: viewer, expires: tomorrow}
- {sha256: ` + digest + `, user: a, role: viewer, expires: 2027-03-31}
- {sha256: ` + strings.ToUpper(digest) + `, user: b, role: viewer, expires: 2027-02-30}
- {sha256: ` + digest + `00, user: b, role: viewer, expires: 2027-03-31T18:00:00}
`,
			want: `
roles.yaml:4:3: tokens[0]: sha256: it is missing; write sha256: the 64 hex digits that sha256sum prints
roles.yaml:4:3: tokens[0]: user: it is missing; write user: ci@example.org
roles.yaml:4:3: tokens[0]: role: it is missing; write role: viewer, operator or approver
roles.yaml:4:3: tokens[0]: expires: it is missing; write expires: 2027-03-31
roles.yaml:5:12: tokens[1]: sha256: it is not 64 hex digits; write what this prints: printf %s "$TOKEN" | sha256sum
roles.yaml:5:26: tokens[1]: user: it is empty; write user: …
roles.yaml:5:53: tokens[1]: expires: "tomorrow" is neither a date nor a time; write a date such as 2027-03-31, the last day, or a time such as 2027-03-31T18:00:00Z
roles.yaml:7:12: tokens[3]: sha256: the same token as in line 6, column 12; keep one of them, and make another token for the other use
roles.yaml:7:110: tokens[3]: expires: "2027-02-30" is neither a date nor a time; write a date such as 2027-03-31, the last day, or a time such as 2027-03-31T18:00:00Z
roles.yaml:8:12: tokens[4]: sha256: it is not 64 hex digits; write what this prints: printf %s "$TOKEN" | sha256sum
roles.yaml:8:112: tokens[4]: expires: "2027-03-31T18:00:00" is neither a date nor a time; write a date such as 2027-03-31, the last day, or a time such as 2027-03-31T18:00:00Z`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := tt.file
			if file == "" {
				file = "roles.yaml"
			}
			require.Equal(t, strings.TrimSpace(tt.want), problems(t, file, tt.give))
		})
	}
}

// Who runs sha256sum on a variable that is not set would let in everybody who sends no token.
func TestATokenOfNothing(t *testing.T) {
	t.Parallel()
	for _, nothing := range []string{"", "\n"} {
		sum := sha256.Sum256([]byte(nothing))
		_, err := roles.Parse("roles.yaml", []byte("roles: [{role: viewer, users: [a]}]\ntokens: [{sha256: "+fmt.Sprintf("%x", sum)+", user: a, role: viewer, expires: 2027-03-31}]\n"), now)
		require.ErrorContains(t, err, "roles.yaml:2:19: tokens[0]: sha256: it is the digest of no text")
	}
}

// A plain token that is written in place of its digest is not shown again.
func TestProblemsShowNoToken(t *testing.T) {
	t.Parallel()
	_, err := roles.Parse("roles.yaml", []byte("roles: []\ntokens:\n- sha256: s3cret-of-mine\n  user: a\n  role: viewer\n  expires: never\n"), now)
	require.ErrorContains(t, err, "it is not 64 hex digits")
	require.NotContains(t, err.Error(), "s3cret-of-mine")
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	set := parse(t, `
roles:
  - {role: approver, users: [ann], as: [manager]}
  - {role: viewer, users: [ci]}
tokens:
  - {sha256: `+digest+`, user: CI, role: viewer, expires: 2026-11-30}
  - {sha256: `+strings.Repeat("0", 64)[1:]+`a, user: CI, role: operator, expires: 2026-12-01}
`)
	require.Equal(t, strings.TrimSpace(`
roles.yaml:6:113: tokens[0]: expires: the token has expired; remove the token, or write a later date
roles.yaml:7:5: tokens[1]: the token may do nothing: "ci" has no role operator; write a role operator with the user under users; a token has no groups`),
		says(set.Warnings))
}

func TestName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 256)
	tests := []struct{ give, want, wantErr string }{
		{give: "Ann.Smith+x@Example.ORG", want: "ann.smith+x@example.org"},
		{give: "auth0|5f7c8ec7c33c6c004bbafe82", want: "auth0|5f7c8ec7c33c6c004bbafe82"},
		{give: `CORP\Ann`, want: `corp\ann`},
		{give: " Ann Smith\t", want: "ann smith"},
		{give: "CN=Ann Smith,OU=R&D", want: "cn=ann smith,ou=r&d"},
		{give: "Jose\u0301", want: "jos\u00e9"},
		{give: "\uff21nn", want: "ann"},
		{give: long, want: long},
		{give: long + "a", wantErr: "it has 257 bytes, more than 256"},
		{give: " ", wantErr: "it is empty"},
		{give: "ann\n", wantErr: "characters that names of people do not have"},
		{give: "ann\x00", wantErr: "characters that names of people do not have"},
		{give: "ann\u200b", wantErr: "characters that names of people do not have"},
		{give: "ann\u202e", wantErr: "characters that names of people do not have"},
		{give: "ann\u00a0smith", wantErr: "characters that names of people do not have"},
		{give: "\xff", wantErr: "it is not valid UTF-8"},
		{give: "ann  smith", wantErr: "it has two spaces in a row"},
	}
	for _, tt := range tests {
		t.Run(tt.give[:min(len(tt.give), 30)], func(t *testing.T) {
			t.Parallel()
			got, err := roles.Name(tt.give)
			if tt.wantErr != "" {
				require.ErrorContains(t, err, tt.wantErr)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestNameIsStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name, err := roles.Name(rapid.StringN(1, 8, -1).Draw(t, "text"))
		if err != nil {
			t.Skip("not a name")
		}
		again, err := roles.Name(name)
		require.NoError(t, err)
		require.Equal(t, name, again)
		upper, err := roles.Name(strings.ToUpper("x@" + strings.ToLower("ANN@EXAMPLE.ORG")))
		require.NoError(t, err)
		require.Equal(t, "x@ann@example.org", upper)
	})
}

// A grant is of a person if and only if its entry names them or one of their groups.
func TestGrantsAreThoseOfThePerson(t *testing.T) {
	t.Parallel()
	word := rapid.SampledFrom([]string{"ann", "ben", "carla", "dan"})
	rapid.Check(t, func(t *rapid.T) {
		type entry struct{ users, groups []string }
		entries := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) entry {
			return entry{rapid.SliceOfNDistinct(word, 1, 3, rapid.ID).Draw(t, "users"), rapid.SliceOfNDistinct(word, 1, 3, rapid.ID).Draw(t, "groups")}
		}), 0, 5).Draw(t, "entries")
		var text strings.Builder
		text.WriteString("roles: [")
		for i, e := range entries {
			text.WriteString(fmt.Sprintf("\n  {role: viewer, users: [%s], groups: [%s], specs: [s%d]},", strings.Join(e.users, ", "), strings.Join(e.groups, ", "), i))
		}
		set, err := roles.Parse("roles.yaml", []byte(text.String()+"\n]\n"), now)
		require.NoError(t, err)
		person, groups := word.Draw(t, "person"), rapid.SliceOfN(word, 0, 3).Draw(t, "groups")
		var want []roles.Grant
		for i, e := range entries {
			if slices.Contains(e.users, person) || slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(e.groups, g) }) {
				want = append(want, roles.Grant{Role: roles.Viewer, Accepts: label.Internal, Specs: []string{fmt.Sprintf("s%d", i)}})
			}
		}
		require.Equal(t, want, set.Grants(person, groups))
	})
}

func FuzzParse(f *testing.F) {
	f.Add("roles.yaml", []byte("roles:\n- {role: approver, users: [a], groups: [b], as: [c], self: true, specs: [d], runs: all, accepts: public}\n"))
	f.Add("roles.json", []byte(`{"roles": [{"role": "viewer", "users": ["a"]}], "tokens": [{"sha256": "`+digest+`", "user": "a", "role": "viewer", "expires": "2027-03-31"}]}`))
	f.Add("roles.yaml", []byte("roles: [{role: viewer, users: 5}, 7]\ntokens: {}\n"))
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		set, err := roles.Parse(name, text, now)
		if err != nil {
			require.NotEmpty(t, err.(*specfile.Error).Problems)
			require.Nil(t, set)
			return
		}
		for _, g := range set.Grants("a", []string{"b"}) {
			require.LessOrEqual(t, g.Accepts, label.Confidential)
			require.Contains(t, []roles.Role{roles.Viewer, roles.Operator, roles.Approver}, g.Role)
			require.Equal(t, g.Role == roles.Approver, g.As != nil)
			require.True(t, g.Specs == nil || len(g.Specs) > 0)
		}
	})
}

// The examples of the reference are valid.
func TestReferenceIsValid(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "roles-file.md"))
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		require.Empty(t, parse(t, string(block[1])).Warnings)
	}
}
