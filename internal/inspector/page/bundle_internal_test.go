package page

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestBundle(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	tests := []struct {
		name    string
		files   fstest.MapFS
		want    string
		wantErr string
	}{
		{
			name:  "an import runs first and once",
			files: fstest.MapFS{"app.js": file("import { b } from \"./b.js\";\nimport { c } from \"./c.js\";\nb(c);\n"), "b.js": file("import { c } from \"./c.js\";\nexport function b() { return c; }\n"), "c.js": file("export const c = 1;\n")},
			want: "\"use strict\";\nconst module_c = (() => {\nconst c = 1;\n\nreturn { c };\n})();\n" +
				"const module_b = (() => {\nconst { c } = module_c;\nfunction b() { return c; }\n\nreturn { b };\n})();\n" +
				"const module_app = (() => {\nconst { b } = module_b;\nconst { c } = module_c;\nb(c);\n\nreturn {  };\n})();\n",
		},
		{name: "cycle", files: fstest.MapFS{"app.js": file("import { b } from \"./b.js\";\n"), "b.js": file("import { a } from \"./app.js\";\n")}, wantErr: "imports itself"},
		{name: "missing", files: fstest.MapFS{"app.js": file("import { b } from \"./b.js\";\n")}, wantErr: "b.js"},
		{name: "default export", files: fstest.MapFS{"app.js": file("export default 1;\n")}, wantErr: "another form"},
		{name: "import of all", files: fstest.MapFS{"app.js": file("import * as b from \"./b.js\";\n")}, wantErr: "another form"},
		{name: "end of the element", files: fstest.MapFS{"app.js": file("const x = \"</SCRIPT>\";\n")}, wantErr: "script element"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := bundle(tt.files, "app.js")
			if tt.wantErr != "" {
				require.ErrorContains(t, err, tt.wantErr)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, string(got))
		})
	}
}
