//go:build unix

package pgcluster

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// identity decides as whom the server runs: PostgreSQL refuses root, so root's runs as another user, who must be able to reach
// the parents. Nil means the caller.
func identity(parents ...string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(found.Uid)
		gid, _ := strconv.Atoi(found.Gid)
		reached := uid != 0
		for _, parent := range parents {
			reached = reached && canReach(parent, uint32(uid), uint32(gid))
		}
		if reached {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, wrapped(ErrPostgresUnavailable, "PostgreSQL does not run as root, and neither of the users postgres and nobody can "+
		"reach %s: run as an unprivileged user, or give parents that all users can reach, such as /dev/shm", strings.Join(parents, " and "))
}

// canReach tells whether a user may pass through every directory of a path.
func canReach(path string, uid, gid uint32) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for {
		info, err := os.Stat(path)
		if err != nil {
			return false
		}
		shift := 0
		if data, ok := info.Sys().(*syscall.Stat_t); ok && data.Uid == uid {
			shift = 6
		} else if ok && data.Gid == gid {
			shift = 3
		}
		if info.Mode().Perm()>>shift&1 == 0 {
			return false
		}
		parent := filepath.Dir(path)
		if parent == path {
			return true
		}
		path = parent
	}
}
