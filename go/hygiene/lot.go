package hygiene

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/smm-h/stricttest/go/internal/tables"
)

// lot is where homes wait that their tests left as they were, because making and removing one costs more than the rest of an
// isolation. A waiting home has another name, so nothing finds it that its test knew.
//
// Go calls nobody when a process ends, so waiting homes must lie where somebody else cleans up: go test runs the binary out of
// a work directory that it deletes. A binary that was started otherwise has no lot; its homes are made and removed.
type lot struct {
	sync.Mutex
	folder string
	isOpen bool
	count  int
	// The homes that wait: without git's configuration, and with it.
	plain, withGit []*directory
}

// waitingCountMax bounds each kind; nested tests need one home each.
const waitingCountMax = 8

var homes lot

// untouched is the time of change of everything in a home that waits or comes from waiting: whatever a test adds, removes or
// rewrites gets a later one.
var untouched = time.Unix(1_000_000_000, 0)

// take gives a home to a test, with git's configuration in it or without.
func (lot *lot) take(hasGit bool) (*directory, error) {
	lot.Lock()
	defer lot.Unlock()
	waiting := lot.waiting(hasGit)
	if last := len(*waiting) - 1; last >= 0 {
		home := (*waiting)[last]
		*waiting = (*waiting)[:last]
		if lot.rename(home, "home-") == nil {
			return home, nil
		}
	}
	home, err := newDirectory(lot.place())
	if err == nil && hasGit {
		err = home.writeGitConfig()
	}
	if err == nil && lot.isOpen {
		home.mark()
	}
	return home, err
}

// giveBack takes a home out of its test's reach: it waits for the next test, or is removed.
func (lot *lot) giveBack(home *directory) error {
	lot.Lock()
	defer lot.Unlock()
	waiting := lot.waiting(home.hasGitConfig())
	if lot.isOpen && len(*waiting) < waitingCountMax && home.isUntouched() && lot.rename(home, "waiting-") == nil {
		*waiting = append(*waiting, home)
		return nil
	}
	return home.remove()
}

func (lot *lot) waiting(hasGit bool) *[]*directory {
	if hasGit {
		return &lot.withGit
	}
	return &lot.plain
}

// place is the folder for new homes; "" stands for that of temporary files.
func (lot *lot) place() string {
	if lot.folder != "" {
		return lot.folder
	}
	work, isDeleted := workDirectory()
	if !isDeleted {
		return ""
	}
	// One folder for each process: a test may run its own binary again.
	folder, err := os.MkdirTemp(work, "stricttest-")
	if err != nil {
		return ""
	}
	lot.folder, lot.isOpen = folder, true
	return folder
}

func (lot *lot) rename(home *directory, prefix string) error {
	lot.count++
	path := lot.folder + string(filepath.Separator) + prefix + strconv.Itoa(lot.count)
	if err := renameFolder(home.path, path); err != nil {
		return err
	}
	home.path = path
	return nil
}

// workDirectory is go test's, if this binary runs out of one: …/go-build123/b001/name.test.
func workDirectory() (path string, isDeleted bool) {
	program, err := os.Executable()
	if err != nil {
		return "", false
	}
	folder := filepath.Dir(program)
	isAction := strings.HasPrefix(filepath.Base(folder), "b")
	isBuild := strings.HasPrefix(filepath.Base(filepath.Dir(folder)), "go-build")
	return folder, isAction && isBuild
}

// writeGitConfig puts git's throwaway configuration into the home.
func (made *directory) writeGitConfig() error {
	return made.write(tables.GitConfig, gitConfigGlobal, gitConfigSystem)
}

func (made *directory) hasGitConfig() bool { return len(made.files) > 0 }

// mark gives everything the time of change that isUntouched looks for. Where that fails, the home is taken for touched.
func (made *directory) mark() {
	for _, name := range append(made.files, homeFolders...) {
		os.Chtimes(made.in(name), untouched, untouched)
	}
	os.Chtimes(made.path, untouched, untouched)
}

// isUntouched tells whether nobody changed anything since the home was marked.
func (made *directory) isUntouched() bool {
	is := func(path string, mode os.FileMode) bool {
		info, err := os.Lstat(path)
		return err == nil && info.Mode() == mode && info.ModTime().Equal(untouched)
	}
	// A name that was removed or replaced shows at its folder.
	for _, file := range made.files[:made.fileCount] {
		if !is(made.in(file), fileMode) {
			return false
		}
	}
	for _, folder := range homeFolders {
		if !is(made.in(folder), os.ModeDir|folderMode) {
			return false
		}
	}
	return is(made.path, os.ModeDir|folderMode)
}
