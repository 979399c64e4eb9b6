package process_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/process"
	"github.com/runteam/runteam/internal/slowtest"
)

// programs are scripts with the program that each needs, and what they write in the end.
var programs = []struct{ name, needs, script, want string }{
	{"git", "git", `git init -q a && cd a && git config user.email a@example.com && git config user.name a && echo text > file &&
git add file && git commit -qm first && git clone -q . ../b && cd ../b && git gc -q && git log --format=%s && git status --short`, "first\n"},
	{"python", "/usr/bin/python3", `cat > p.py <<'END'
import asyncio, concurrent.futures, multiprocessing, os, socket, sqlite3, subprocess, tempfile
async def main():
    p = await asyncio.create_subprocess_exec("cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert (await p.communicate(b"x"))[0] == b"x"
    assert await asyncio.to_thread(lambda: 5) == 5
    a, b = socket.socketpair()
    r, w = await asyncio.open_connection(sock=a)
    w.write(b"y"); await w.drain()
    assert b.recv(1) == b"y"
asyncio.run(main())
db = sqlite3.connect("db"); db.execute("create table t (a)"); db.execute("insert into t values (1)"); db.commit()
ends = multiprocessing.Pipe(); ends[0].send([1]); assert ends[1].recv() == [1]
with tempfile.TemporaryDirectory() as d: open(os.path.join(d, "f"), "w").write("z")
with concurrent.futures.ThreadPoolExecutor() as e: print(sum(e.map(int, "12")))
END
/usr/bin/python3 p.py`, "3\n"},
	{"node", "node", `cat > p.js <<'END'
const {fork, execSync} = require("child_process"), fs = require("fs"), {Worker} = require("worker_threads")
if (process.argv[2]) process.on("message", m => { process.send(m + 1); process.disconnect() })
else {
  fs.writeFileSync("f", execSync("echo a"))
  const w = new Worker("require('worker_threads').parentPort.postMessage(1)", {eval: true})
  w.on("message", n => { const c = fork("p.js", ["child"]); c.on("message", m => fs.promises.readFile("f", "utf8").then(t => console.log(m + t.trim()))); c.send(n) })
}
END
node p.js`, "2a\n"},
	{"cc", "cc", `printf '#include <stdio.h>\nint main(void) { puts("x"); return 0; }\n' > a.c && cc -O2 -Wall -o a a.c && test -s a && echo built`, "built\n"},
	{"go", "go", `mkdir m && cd m && printf 'module m\n\ngo 1.21\n' > go.mod && printf 'package main\n\nfunc main() { print("ran") }\n' > main.go &&
GOTOOLCHAIN=local GOFLAGS=-mod=mod go build -o m . && ./m 2>&1`, "ran"},
}

// What people expect agents to run works under confinement.
func TestConfinedProgramsThatPeopleUse(t *testing.T) {
	slowtest.Only(t)
	t.Parallel()
	skipUnlessConfines(t, true)
	for _, tt := range programs {
		t.Run(tt.name, func(t *testing.T) {
			path, err := exec.LookPath(tt.needs)
			if err != nil {
				t.Skipf("%s is not installed", tt.needs)
			}
			dir := t.TempDir()
			r, err := process.Run(t.Context(), &process.Command{
				Path: "bash", Args: []string{"-c", tt.script}, Dir: dir, Confine: true,
				Env: []string{"PATH=" + filepath.Dir(path) + ":/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + dir},
			}, nil, 1<<20)
			require.NoError(t, err)
			require.Equal(t, tt.want, string(r.Stdout), "%s %s", r.Exceeded, r.Stderr)
		})
	}
}

// A Python of the user's home runs once its folder is readable.
func TestConfinedProgramOfAHome(t *testing.T) {
	slowtest.Only(t)
	t.Parallel()
	skipUnlessConfines(t, true)
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	versions, err := filepath.Glob(filepath.Join(home, ".pyenv/versions/3.1[0-9]*"))
	require.NoError(t, err)
	if len(versions) == 0 {
		t.Skip("no Python of pyenv is installed")
	}
	for _, version := range versions {
		require.NoError(t, process.CheckReadable(version))
		dir := t.TempDir()
		r, err := process.Run(t.Context(), &process.Command{
			Path: filepath.Join(version, "bin/python3"), Args: []string{"-c", "import asyncio, json\nasync def f():\n  p = await asyncio.create_subprocess_exec('echo', 'x', stdout=-1)\n  print((await p.communicate())[0])\nasyncio.run(f())"}, Dir: dir, Confine: true,
			Env: []string{"PATH=/usr/bin:/bin", "HOME=" + dir}, Readable: []string{version},
		}, nil, 1<<20)
		require.NoError(t, err)
		require.Equal(t, "b'x\\n'\n", string(r.Stdout), "%s", r.Stderr)
	}
}
