//go:build unix

package pgcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// runMagic begins a run's file. The command hermetic pg sweep reads the same files.
const runMagic = "hermetic-pg run 1"

// runLock is a run's file in the list of this user's runs, locked as long as this process lives.
type runLock struct {
	path string
	file *os.File
}

func registry() (string, error) {
	var reasons []string
	for _, parent := range []string{"/dev/shm", "/tmp"} {
		path := filepath.Join(parent, fmt.Sprintf("hermetic-pg-%d", os.Geteuid()))
		err := os.Mkdir(path, 0o700)
		if err == nil {
			return path, nil
		}
		info, failed := os.Lstat(path)
		if failed == nil && info.IsDir() && info.Mode().Perm()&0o022 == 0 && ownerOf(info) == os.Geteuid() {
			return path, nil
		}
		reasons = append(reasons, err.Error())
	}
	return "", wrapped(ErrPostgresUnavailable, "no place for the list of running clusters: %s", strings.Join(reasons, ", "))
}

func ownerOf(info os.FileInfo) int {
	if data, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(data.Uid)
	}
	return -1
}

// newRunLock sweeps what dead runs left, then makes the run's file. Nobody sees it before it is locked.
func newRunLock(r *run) (*runLock, error) {
	directory, err := registry()
	if err != nil {
		return nil, err
	}
	sweep(directory)
	path := filepath.Join(directory, r.name+".lock")
	fresh := filepath.Join(directory, "."+r.name+".new")
	file, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
	}
	if err == nil {
		_, err = fmt.Fprintf(file, "%s\t%s\t%s\t%s\t0\t%d\n", runMagic, r.name, r.dir, r.socketDir, os.Getpid())
	}
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return nil, wrapped(ErrPostgresUnavailable, "cannot make %s: %v", path, err)
	}
	return &runLock{path, file}, nil
}

func (l *runLock) release() {
	os.Remove(l.path)
	l.file.Close()
}

// sweep removes what dead runs of this user left: those whose file nobody has locked.
func sweep(directory string) {
	paths, _ := filepath.Glob(filepath.Join(directory, "*.lock"))
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			continue
		}
		if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			sweepRun(path)
		}
		file.Close()
	}
}

func sweepRun(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		return
	}
	fields := strings.Split(strings.TrimSuffix(string(text), "\n"), "\t")
	// Only directories that carry the run's name are ours to remove.
	if len(fields) == 6 && fields[0] == runMagic && len(fields[1]) == 12 &&
		strings.Contains(filepath.Base(fields[2]), fields[1]) && strings.Contains(filepath.Base(fields[3]), fields[1]) {
		remains(fields[2], fields[3])
	}
	os.Remove(path)
}

// remains ends the processes that work in a run's data directory, then removes its directories.
func remains(dir, socketDir string) {
	if place, err := os.Stat(filepath.Join(dir, "data")); err == nil {
		killWorkers(place)
	}
	os.RemoveAll(socketDir)
	os.RemoveAll(dir)
}

// killWorkers kills every process whose working directory is that one: a number in a file is never trusted. Where there is no
// /proc, nobody is found.
func killWorkers(place os.FileInfo) {
	for round := 0; round < 100; round++ {
		found := false
		entries, _ := filepath.Glob("/proc/[0-9]*/cwd")
		for _, entry := range entries {
			if info, err := os.Stat(entry); err != nil || !os.SameFile(info, place) {
				continue
			}
			if pid, err := strconv.Atoi(strings.Split(entry, "/")[2]); err == nil && pid != os.Getpid() {
				found = true
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if !found {
			return
		}
	}
}
