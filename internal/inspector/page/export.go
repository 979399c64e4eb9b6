package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"time"

	"github.com/runteam/runteam/label"
)

// An ExportDocument is a run as an exported file holds it.
type ExportDocument struct {
	Run     string               `json:"run"`
	Name    string               `json:"name,omitempty"`
	Time    time.Time            `json:"time"`    // when it was exported
	Accepts label.Classification `json:"accepts"` // the clearance of whom the documents are for

	// Documents are answers of the API by the path below /api/v1, in the form of that viewer:
	// /runs/ID, and below it /usage, /blocks, /receipts, /events (with Accept: application/json), /graph,
	// /artifacts, /flow (with the ways of each source) and /governance/handoff-rules. The page says
	// of a document that is missing that the file does not have it. /runs/ID/tasks/TASK adds the
	// calls of a task, and /blocks below it shows its result.
	Documents map[string]json.RawMessage `json:"documents"`
}

// Export returns one HTML file that shows a run. It needs no server and no network: it holds the
// page and the documents, and its content security policy allows nothing else.
func Export(d *ExportDocument) ([]byte, error) {
	data, err := json.Marshal(d) // escapes <, > and &, so that no text ends the script element
	if err != nil {
		return nil, fmt.Errorf("export of run %s: %w", d.Run, err)
	}
	script, err := bundle(FS, "app.js")
	if err != nil {
		return nil, err
	}
	style, err := fs.ReadFile(FS, "app.css")
	if err != nil {
		return nil, err
	}
	icon, err := fs.ReadFile(FS, "icon.svg")
	if err != nil {
		return nil, err
	}
	title := d.Name
	if title == "" {
		title = d.Run
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>%s</title>
<link rel="icon" href="data:image/svg+xml,%s">
<style>%s</style>
</head>
<body>
<script type="application/json" id="runteam-export">%s</script>
<script>%s</script>
</body>
</html>
`, sourceHash(script), sourceHash(style), html.EscapeString(title), url.PathEscape(string(icon)), style, data, script)
	return b.Bytes(), nil
}

// sourceHash returns the source of a content security policy that allows exactly this text.
func sourceHash(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
