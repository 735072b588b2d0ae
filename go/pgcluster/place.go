package pgcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// SUNPathMax is the longest path of a unix socket in bytes: sun_path of Linux, without the NUL.
const SUNPathMax = 107

const socketFileTemplate = ".s.PGSQL.%d"

// SocketPathFor is the path of the socket that a server with this port makes in a directory.
func SocketPathFor(dir string, port int) string {
	return filepath.Join(dir, fmt.Sprintf(socketFileTemplate, port))
}

// CheckSocketDir checks, before anything runs, that a server can put its socket there, and returns the socket's path.
//
// It returns an ErrSocketPathTooLong, or an ErrInvalidArgument for whitespace in the path.
func CheckSocketDir(dir string, port int) (string, error) {
	if strings.IndexFunc(dir, unicode.IsSpace) >= 0 {
		return "", wrapped(ErrInvalidArgument, "socket directory %q contains whitespace, which connection strings and server "+
			"options split at; choose another", dir)
	}
	path := SocketPathFor(dir, port)
	if len(path) > SUNPathMax {
		return "", wrapped(ErrSocketPathTooLong, "the path of the socket would have %d bytes, the kernel takes %d: %s; give a "+
			"shorter SocketParent, such as /dev/shm or /tmp", len(path), SUNPathMax, path)
	}
	return path, nil
}

// chooseParent uses the given directory or nothing else; where none is given, the first usual one that can be written.
func chooseParent(option, given string, usual ...string) (string, error) {
	if given != "" {
		path, err := filepath.Abs(given)
		if err == nil {
			err = usable(path)
		}
		if err != nil {
			return "", wrapped(ErrPostgresUnavailable, "%s %s cannot be used: %v; give a directory that can be written", option, given, err)
		}
		return path, nil
	}
	var reasons []string
	for _, path := range usual {
		err := usable(path)
		if err == nil {
			return path, nil
		}
		reasons = append(reasons, fmt.Sprintf("%s: %v", path, err))
	}
	return "", wrapped(ErrPostgresUnavailable, "no place for a cluster: %s; give one with %s", strings.Join(reasons, ", "), option)
}

// usable tries what will be done there: making a directory.
func usable(path string) error {
	probe, err := os.MkdirTemp(path, "hpg-probe-")
	if err != nil {
		return err
	}
	return os.Remove(probe)
}
