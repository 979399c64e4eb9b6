package page_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/inspector/page"
	"github.com/runteam/runteam/label"
)

const mostBytes = 300_000

// files returns the files of the page by name.
func files(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, fs.WalkDir(page.FS, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(page.FS, name)
		all[name] = string(text)
		return err
	}))
	return all
}

func TestThePageIsSmallAndFlat(t *testing.T) {
	t.Parallel()
	total := 0
	for name, text := range files(t) {
		require.Equal(t, path.Base(name), name, "every file is served as /assets/NAME")
		total += len(text)
	}
	require.Less(t, total, mostBytes)
}

// Text becomes a part of the page in one place, as a text node. These are the ways in which it could
// become HTML or a script.
func TestNoTextBecomesHTMLOrScript(t *testing.T) {
	t.Parallel()
	ways := regexp.MustCompile(`(?i)innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|setHTML|srcdoc|\beval\(|new Function|\bjavascript:|set(?:Timeout|Interval)\(\s*["'` + "`" + `]`)
	for name, text := range files(t) {
		require.NotRegexp(t, ways, text, name)
	}
}

func TestThePageLoadsNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	address := regexp.MustCompile(`(?:https?:)?//[\w.-]+\.[a-z]{2,}[^\s"')]*`)
	for name, text := range files(t) {
		for _, found := range address.FindAllString(text, -1) {
			require.Equal(t, "http://www.w3.org/2000/svg", found, name)
		}
	}
}

// The content security policy of the server allows no script and no style in the page itself.
func TestIndexHasNoInlineScriptOrStyle(t *testing.T) {
	t.Parallel()
	index := files(t)["index.html"]
	require.NotRegexp(t, regexp.MustCompile(`(?i)<style|\bstyle=|\son\w+=|<script(?:[^>]*)>[^<]`), index)
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(index, -1) {
		require.Contains(t, files(t), strings.TrimPrefix(m[1], "/assets/"))
	}
}

func TestModulesImportWhatExists(t *testing.T) {
	t.Parallel()
	all := files(t)
	for name, text := range all {
		for _, m := range regexp.MustCompile(`(?m)^import \{ ([^}]+) \} from "\./([^"]+)"`).FindAllStringSubmatch(text, -1) {
			require.Contains(t, all, m[2], name)
			for used := range strings.SplitSeq(m[1], ", ") {
				require.Regexp(t, `(?m)^export (?:async )?(?:function|class|const) `+used+`\b`, all[m[2]], "%s imports %s", name, used)
				require.Regexp(t, `\b`+used+`\b`, strings.ReplaceAll(text, m[0], ""), "%s imports %s and does not use it", name, used)
			}
		}
	}
}

func export(t *testing.T, documents map[string]json.RawMessage) string {
	t.Helper()
	got, err := page.Export(&page.ExportDocument{
		Run: "0195c3a1", Name: `</title><script>alert("name")</script>`, Time: time.Unix(0, 0).UTC(), Accepts: label.Confidential, Documents: documents,
	})
	require.NoError(t, err)
	return string(got)
}

func TestExportIsOneFileWithItsDocuments(t *testing.T) {
	t.Parallel()
	evil := `</script><script>alert(1)</script><!-- & ` + "\u2028" + `<img src=x onerror=alert(2)>`
	quoted, err := json.Marshal(map[string]string{"output": evil})
	require.NoError(t, err)
	got := export(t, map[string]json.RawMessage{"/runs/0195c3a1": quoted})

	require.NotContains(t, got, "alert(1)</script>")
	require.NotContains(t, got, `<script>alert`)
	require.Equal(t, 2, strings.Count(got, "</script>"))
	require.NotRegexp(t, `(?m)^(?:import|export) `, got)
	require.NotRegexp(t, `(?:src|href)="/`, got)

	data := regexp.MustCompile(`(?s)<script type="application/json" id="runteam-export">(.*?)</script>`).FindStringSubmatch(got)
	require.Len(t, data, 2)
	require.NotContains(t, data[1], "<")
	var d page.ExportDocument
	require.NoError(t, json.Unmarshal([]byte(data[1]), &d))
	require.Equal(t, label.Confidential, d.Accepts)
	require.JSONEq(t, string(quoted), string(d.Documents["/runs/0195c3a1"]))
}

func TestExportAllowsItsOwnScriptAndStyleAlone(t *testing.T) {
	t.Parallel()
	got := export(t, nil)
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]+)"`).FindStringSubmatch(got)
	require.Len(t, policy, 2)
	require.Contains(t, policy[1], "default-src 'none'")
	for directive, element := range map[string]string{"script-src": `(?s)<script>(.*?)</script>`, "style-src": `(?s)<style>(.*?)</style>`} {
		text := regexp.MustCompile(element).FindStringSubmatch(got)
		require.Len(t, text, 2, directive)
		sum := sha256.Sum256([]byte(text[1]))
		require.Contains(t, policy[1], directive+" 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"';")
	}
}

// Without preloading, a browser learns of one module after another.
func TestIndexPreloadsEveryModule(t *testing.T) {
	t.Parallel()
	all := files(t)
	for name := range all {
		if path.Ext(name) == ".js" {
			require.Contains(t, all["index.html"], `"/assets/`+name+`"`)
		}
	}
}
