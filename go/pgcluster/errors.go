package pgcluster

import (
	"errors"
	"fmt"
	"strings"
)

// What every error of this package wraps one of; ask with errors.Is.
var (
	// ErrPostgresUnavailable: there is no PostgreSQL here, no usable place for a cluster, or nobody to run it as. Skip.
	ErrPostgresUnavailable = errors.New("PostgreSQL is unavailable")
	// ErrSocketPathTooLong: the path of the socket is longer than the kernel takes.
	ErrSocketPathTooLong = errors.New("socket path too long")
	// ErrInvalidArgument: an argument has a value that cannot be used.
	ErrInvalidArgument = errors.New("invalid argument")
	// ErrCluster: something failed in a cluster. The message holds what was run, what it printed and the server's log.
	ErrCluster = errors.New("cluster failed")
)

func wrapped(sentinel error, format string, values ...any) error {
	return fmt.Errorf("pgcluster: "+format+" (%w)", append(values, sentinel)...)
}

// failure is an ErrCluster with its parts, those that are not empty.
func failure(what, command, output, log string) error {
	parts := []string{"pgcluster: " + strings.TrimSpace(what)}
	for _, part := range [][2]string{{"command", command}, {"output", output}, {"server log", log}} {
		text := strings.TrimRight(part[1], "\n ")
		switch {
		case text == "":
		case strings.Contains(text, "\n"):
			parts = append(parts, part[0]+":\n"+text)
		default:
			parts = append(parts, part[0]+": "+text)
		}
	}
	return fmt.Errorf("%s\n(%w)", strings.Join(parts, "\n"), ErrCluster)
}
