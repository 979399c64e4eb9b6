// Package page is the page of the inspector: the files that a browser loads, and one file that shows
// a run without a server.
//
// The page is HTML, CSS and modules of JavaScript as they are written: nothing is built and nothing
// is from third parties. It gets its data from the API of package inspector, or from the documents
// of that API in an exported file:
//
//	html, err := page.Export(&page.ExportDocument{Run: id, Documents: documents})
//
// Texts that models and people wrote get into the page as text nodes, never as HTML.
package page

import (
	"embed"
	"io/fs"
)

//go:embed assets
var assets embed.FS

// FS has index.html, which is served at /, and the files that it names as /assets/NAME.
var FS, _ = fs.Sub(assets, "assets") // the folder is embedded, so there is no error
