package page

import (
	"bytes"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// The only forms of import and export that the modules use, each on a line of its own.
var (
	importLine = regexp.MustCompile(`(?m)^import \{ ([\w, ]+) \} from "\./(\w+)\.js";\n`)
	exportWord = regexp.MustCompile(`(?m)^export ((?:async )?function|class|const) (\w+)`)
	moduleWord = regexp.MustCompile(`(?m)^(?:import|export)\b.*`)
)

// bundle returns one script that does what the module does. Each module becomes a function that
// returns what it exports, so that names are as private as before, and runs after those it imports.
func bundle(files fs.FS, main string) ([]byte, error) {
	b := bundler{files: files, state: map[string]state{}}
	b.out.WriteString("\"use strict\";\n")
	if err := b.add(strings.TrimSuffix(main, ".js")); err != nil {
		return nil, fmt.Errorf("bundle %s: %w", main, err)
	}
	return b.out.Bytes(), nil
}

type state int

const (
	unknown state = iota
	open
	written
)

type bundler struct {
	files fs.FS
	state map[string]state
	out   bytes.Buffer
}

// add writes a module after the modules that it imports.
func (b *bundler) add(name string) error {
	switch b.state[name] {
	case written:
		return nil
	case open:
		return fmt.Errorf("module %s: it imports itself, through others", name)
	}
	b.state[name] = open
	text, err := fs.ReadFile(b.files, name+".js")
	if err != nil {
		return err
	}
	for _, m := range importLine.FindAllSubmatch(text, -1) {
		if err := b.add(string(m[2])); err != nil {
			return err
		}
	}
	b.state[name] = written
	return b.write(name, text)
}

func (b *bundler) write(name string, text []byte) error {
	var names []string
	for _, m := range exportWord.FindAllSubmatch(text, -1) {
		names = append(names, string(m[2]))
	}
	text = importLine.ReplaceAll(text, []byte("const { $1 } = module_$2;\n"))
	text = exportWord.ReplaceAll(text, []byte("$1 $2"))
	if line := moduleWord.Find(text); line != nil {
		return fmt.Errorf("module %s: %q has another form than import { NAME } from \"./FILE.js\", export function, class or const", name, line)
	}
	for _, bad := range []string{"</script", "<!--"} {
		if bytes.Contains(bytes.ToLower(text), []byte(bad)) {
			return fmt.Errorf("module %s: it contains %s, which ends or changes the script element", name, bad)
		}
	}
	fmt.Fprintf(&b.out, "const module_%s = (() => {\n%s\nreturn { %s };\n})();\n", name, text, strings.Join(names, ", "))
	return nil
}
