package pgcluster

import (
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// Binaries names the programs of one release of PostgreSQL. Only the server's own are run.
type Binaries struct {
	Initdb string
	PgCtl  string
	Psql   string
}

// BinDir is the directory that initdb was found in.
func (b Binaries) BinDir() string {
	return filepath.Dir(b.Initdb)
}

// postgres is the server. Debian's links name one program at a time: the server lies beside what initdb really is.
func (b Binaries) postgres() string {
	real, err := filepath.EvalSymlinks(b.Initdb)
	if err != nil {
		real = b.Initdb
	}
	return filepath.Join(filepath.Dir(real), "postgres")
}

// Where programs are looked for after PATH. A * stands for a release; the newest, by number, comes first.
var searchDirs = []string{
	"/usr/bin",
	"/usr/local/bin",
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/libexec/postgresql*",
	"/usr/lib64/pgsql/bin",
	"/usr/local/pgsql/bin",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/opt/local/lib/postgresql*/bin",
}

// FindBinaries finds a release: in the extra directories, in their order; then on PATH; then in the usual places.
//
// It returns an ErrPostgresUnavailable with every place that was looked in.
func FindBinaries(extraDirs ...string) (Binaries, error) {
	return findAmong(extraDirs, filepath.SplitList(os.Getenv("PATH")), searchDirs)
}

func findAmong(extra, path, usual []string) (Binaries, error) {
	places := append([]string{}, extra...)
	for _, place := range path {
		if filepath.IsAbs(place) {
			places = append(places, place)
		}
	}
	for _, pattern := range usual {
		places = append(places, expand(pattern)...)
	}
	var looked []string
	client := ""
	seen := map[string]bool{}
	for _, place := range places {
		info, err := os.Stat(place)
		if seen[place] || err != nil || !info.IsDir() {
			continue
		}
		seen[place] = true
		looked = append(looked, place)
		if found, ok := inDirectory(place); ok {
			return found, nil
		}
		if psql := filepath.Join(place, "psql"); client == "" && isProgram(psql) {
			client = "; " + psql + " is there, but the client package alone is not enough"
		}
	}
	where := strings.Join(looked, ", ")
	if where == "" {
		where = "(no candidate directory exists)"
	}
	return Binaries{}, wrapped(ErrPostgresUnavailable, "PostgreSQL is not usable on this machine: no directory holds the "+
		"server's programs (initdb, postgres, pg_ctl; psql beside them): looked in %s%s; install the server package "+
		"(Debian and Ubuntu: postgresql; Fedora: postgresql-server), or name its directory", where, client)
}

// inDirectory names the programs of a directory that has initdb and a way to the server.
func inDirectory(place string) (Binaries, bool) {
	found := Binaries{Initdb: filepath.Join(place, "initdb")}
	if !isProgram(found.Initdb) {
		return Binaries{}, false
	}
	home := filepath.Dir(found.postgres())
	beside := func(name string) string {
		for _, directory := range []string{place, home} {
			if path := filepath.Join(directory, name); isProgram(path) {
				return path
			}
		}
		return ""
	}
	found.PgCtl, found.Psql = beside("pg_ctl"), beside("psql")
	return found, found.PgCtl != "" || isProgram(found.postgres())
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

var number = regexp.MustCompile(`\d+`)

// expand lists the directories of a pattern, the newest release first: 18 comes before 9.6.
func expand(pattern string) []string {
	if !strings.Contains(pattern, "*") {
		return []string{pattern}
	}
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil
	}
	release := func(path string) []int {
		var numbers []int
		for _, digits := range number.FindAllString(path, -1) {
			value, _ := strconv.Atoi(digits)
			numbers = append(numbers, value)
		}
		return numbers
	}
	sort.SliceStable(found, func(i, j int) bool {
		left, right := release(found[i]), release(found[j])
		for at := 0; at < len(left) && at < len(right); at++ {
			if left[at] != right[at] {
				return left[at] > right[at]
			}
		}
		return len(left) > len(right)
	})
	return found
}
