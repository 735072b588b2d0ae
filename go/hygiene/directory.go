package hygiene

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// directory is a throwaway home: known folders, and the files that were written with it. What a test adds goes with it.
type directory struct {
	path string
	// The names in it that were written, and how many of them, from the first on, are files of their own.
	files     []string
	fileCount int
}

// homeFolders are those of xdgHomes and what lies above them, parents first.
var homeFolders = []string{".cache", ".config", ".local", ".local/share", ".local/state"}

// Only the owner may look: ssh and gpg refuse a home that others can change.
const (
	folderMode = 0o700
	fileMode   = 0o600
)

func newDirectory(parent string) (*directory, error) {
	path, err := os.MkdirTemp(parent, "stricttest-home-")
	if err != nil {
		return nil, err
	}
	made := &directory{path: path}
	for _, folder := range homeFolders {
		if err := os.Mkdir(made.in(folder), folderMode); err != nil {
			made.remove()
			return nil, err
		}
	}
	return made, nil
}

// in is the path of something inside.
func (made *directory) in(name string) string {
	return made.path + string(filepath.Separator) + filepath.FromSlash(name)
}

// write makes a file, and a second name for it that behaves as a file of its own wherever a program replaces what it changes.
func (made *directory) write(text, name, secondName string) error {
	if err := os.WriteFile(made.in(name), []byte(text), fileMode); err != nil {
		return err
	}
	made.files, made.fileCount = append(made.files, name), made.fileCount+1
	if err := os.Link(made.in(name), made.in(secondName)); err != nil {
		// Not every file system has second names.
		if err := os.WriteFile(made.in(secondName), []byte(text), fileMode); err != nil {
			return err
		}
		made.fileCount++
	}
	made.files = append(made.files, secondName)
	return nil
}

func (made *directory) remove() error {
	begin, held := time.Now(), hold(made)
	isGone := made.removeKnown()
	held.release(time.Since(begin))
	if isGone || os.RemoveAll(made.path) == nil {
		return nil
	}
	// Go's module cache, and what tests try out, may be closed to writing.
	openForWriting(made.path)
	return os.RemoveAll(made.path)
}

// removeKnown tells whether everything is gone: it is, if nobody added anything.
func (made *directory) removeKnown() bool {
	for _, file := range made.files {
		removeFile(made.in(file))
	}
	for at := len(homeFolders) - 1; at >= 0; at-- {
		removeFolder(made.in(homeFolders[at]))
	}
	return removeFolder(made.path) == nil
}

func openForWriting(root string) {
	filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		// A folder is visited before it is read.
		if entry != nil && entry.IsDir() {
			os.Chmod(path, folderMode)
		}
		return nil
	})
}
