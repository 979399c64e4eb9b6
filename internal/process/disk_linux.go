//go:build linux && (amd64 || arm64)

package process

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// maxPath is the length of the longest path in the folder of a confined program. The kernel
	// bounds only the length of one that is given to it, and not how deeply folders are nested.
	maxPath = 16 << 10

	// maxOpenFiles is how many files one process may have open.
	maxOpenFiles = 4096
	// maxHandles is how many files all processes of a program may have open, with what their epolls watch. The
	// kernel has limits for all programs of a user, and of the machine, together.
	maxHandles = 64 << 10

	pipeBuffer = 64 << 10 // bytes that a pipe can hold; a confined program cannot change it
	// socketBuffer is what a socket can hold: the kernel's default, and a half for the message that
	// exceeds it. A confined program cannot change it.
	socketBuffer = 320 << 10

	minFileSize, block = 4 << 10, 512 // bytes that each name of a file counts at least, and bytes of a block
)

// seenFiles are the files of a folder that have been counted: those with several names, and those
// without any.
type seenFiles struct {
	device uint64
	path   string // of the folder, without symbolic links
	inodes map[uint64]bool
}

// readDisk adds what the files of a folder take. It follows no symbolic link. It ends early when they take
// more than limit bytes, or when giveUp says so.
func (u *usage) readDisk(dir string, limit int64, giveUp func() bool) *seenFiles {
	seen := &seenFiles{inodes: map[uint64]bool{}}
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return seen
	}
	defer unix.Close(root)
	var stat unix.Stat_t
	if err := unix.Fstat(root, &stat); err == nil {
		seen.device = stat.Dev
		seen.path, _ = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", root))
		u.disk += max(stat.Blocks*block, minFileSize)
	}
	u.free = freeSpace(dir) // before what the program writes meanwhile
	u.readTree(root, 0, seen, func() bool { return u.disk > limit || u.tooDeep || giveUp() })
	return seen
}

// never is the giveUp of a look that always goes to its end.
func never() bool { return false }

// freeSpace returns how many bytes of the file system of a folder are free for this user.
func freeSpace(dir string) int64 {
	var system unix.Statfs_t
	if err := unix.Statfs(dir, &system); err != nil {
		return 0
	}
	return int64(system.Bavail) * system.Bsize
}

// readTree adds what a folder has, which is open. The length is that of its path. Paths are kept short, since
// there may be half a million folders, and each may have one of maxPath.
func (u *usage) readTree(root, length int, seen *seenFiles, isEnough func() bool) {
	const longPath = 128
	for folders := []string{"."}; len(folders) > 0 && !isEnough(); {
		folder := folders[len(folders)-1]
		folders = folders[:len(folders)-1]
		switch {
		case length+len(folder) > maxPath:
			u.tooDeep = true
		case len(folder) > longPath:
			if place, err := openBelow(root, folder, false); err == nil {
				u.readTree(place, length+len(folder), seen, isEnough)
				unix.Close(place)
			}
		default:
			folders = append(folders, u.readFolder(root, folder, seen, isEnough)...)
		}
	}
}

// readFolder adds what a folder below a root has, and returns the folders in it.
func (u *usage) readFolder(root int, path string, seen *seenFiles, isEnough func() bool) (folders []string) {
	fd, err := openBelow(root, path, true)
	if err != nil {
		return nil // it was removed, or replaced by a link
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	for err == nil && !isEnough() {
		var names []string
		names, err = f.Readdirnames(1000)
		for _, name := range names {
			var stat unix.Stat_t
			if err := unix.Fstatat(fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				continue
			}
			if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
				folders = append(folders, path+"/"+name)
				u.disk += max(stat.Blocks*block, minFileSize)
				continue
			}
			u.addFile(&stat, seen)
		}
	}
	return folders
}

// addFile adds a file that is no folder.
func (u *usage) addFile(stat *unix.Stat_t, seen *seenFiles) {
	if stat.Nlink != 1 {
		if seen.inodes[stat.Ino] {
			u.disk += minFileSize // the name takes space too
			return
		}
		seen.inodes[stat.Ino] = true
	}
	u.disk += max(stat.Blocks*block, minFileSize)
	if stat.Mode&unix.S_IFMT == unix.S_IFREG {
		u.largest = max(u.largest, stat.Size)
	}
}

// openBelow opens a folder below another one, for reading or only as a place. The path leads through no
// symbolic link. A folder without the right to read gets it, since a program could make one to hide its files.
func openBelow(at int, path string, read bool) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	place, err := unix.Openat2(at, path, &how)
	if err != nil || !read {
		return place, err
	}
	defer unix.Close(place)
	name := fmt.Sprintf("/proc/self/fd/%d", place)
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) && unix.Chmod(name, 0o700) == nil {
		fd, err = unix.Open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	return fd, err
}

// readOpenFiles adds what processes hold and no folder shows: files that have lost their last name,
// and what pipes and sockets can hold. No file is on its way from one process to another, since the
// sockets of a confined program do not carry any.
func (u *usage) readOpenFiles(tasks []string, seen *seenFiles, largest int64) {
	buffers := map[uint64]bool{}
	for _, task := range tasks {
		names, err := readNames(task + "/fd")
		if errors.Is(err, unix.EACCES) {
			u.unseen = true
		}
		if u.handles += len(names); u.handles > maxHandles {
			return
		}
		for _, name := range names {
			var stat unix.Stat_t
			if err := unix.Stat(task+"/fd/"+name, &stat); err == nil {
				u.addOpenFile(&stat, seen, buffers)
			}
			if err == nil && stat.Mode&unix.S_IFMT == 0 { // a handle of the kernel
				u.handles += watches(task + "/fdinfo/" + name)
			}
		}
		var stat unix.Stat_t
		if err := unix.Stat(task+"/exe", &stat); err == nil {
			u.addOpenFile(&stat, seen, buffers)
		}
	}
	for _, task := range tasks {
		u.readMappedFiles(task, seen, largest)
	}
}

// watches returns how many files an epoll watches, from what the kernel says about it. It can watch far more
// than a process may open, since one file counts for each number that it had.
func watches(info string) (n int) {
	f, err := os.Open(info)
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); n <= maxHandles && lines.Scan(); {
		if bytes.HasPrefix(lines.Bytes(), []byte("tfd:")) {
			n++
		}
	}
	return n
}

// readMappedFiles adds the files without a name that a process has only in its memory. Their size is
// not known, so each counts as the largest that there can be.
func (u *usage) readMappedFiles(task string, seen *seenFiles, largest int64) {
	raw, err := os.ReadFile(task + "/maps")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(raw)) {
		line, deleted := strings.CutSuffix(strings.TrimSuffix(line, "\n"), " (deleted)")
		if !deleted || !strings.Contains(line, " "+seen.path+"/") {
			continue
		}
		const inode = 4 // of the fields of a line
		number, err := strconv.ParseUint(strings.Fields(line)[inode], 10, 64)
		if err == nil && !seen.inodes[number] {
			seen.inodes[number] = true
			u.disk += largest
		}
	}
}

// addOpenFile adds an open file unless a folder shows it.
func (u *usage) addOpenFile(stat *unix.Stat_t, seen *seenFiles, buffers map[uint64]bool) {
	size := int64(0)
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		if stat.Nlink == 0 && stat.Dev == seen.device {
			u.addFile(stat, seen)
		}
		return
	case unix.S_IFIFO:
		size = pipeBuffer
	case unix.S_IFSOCK:
		size = socketBuffer
	}
	if size > 0 && !buffers[stat.Ino] {
		buffers[stat.Ino] = true
		u.memory += size
	}
}
