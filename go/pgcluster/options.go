package pgcluster

import (
	"strings"
	"time"
)

type settings struct {
	port          int
	superuser     string
	maintenanceDB string
	dataParent    string
	socketParent  string
	binaries      Binaries
	startTimeout  time.Duration
}

// An Option changes a default of Start or Ephemeral.
type Option func(*settings)

// Port sets the port, which only names the socket's file. The default is 5432.
func Port(port int) Option { return func(s *settings) { s.port = port } }

// Superuser sets the name of the superuser. The default is postgres.
func Superuser(name string) Option { return func(s *settings) { s.superuser = name } }

// MaintenanceDB sets the database that statements go to where none is named. The default is postgres.
func MaintenanceDB(name string) Option { return func(s *settings) { s.maintenanceDB = name } }

// DataParent sets where the data directory is made. It is used or refused, never replaced. The default is /dev/shm, then the
// directory for temporary files.
func DataParent(dir string) Option { return func(s *settings) { s.dataParent = dir } }

// SocketParent sets where the socket's directory is made. It is used or refused, never replaced. The default is /dev/shm, then
// /tmp, then the directory for temporary files.
func SocketParent(dir string) Option { return func(s *settings) { s.socketParent = dir } }

// UseBinaries sets the programs. The default is what FindBinaries finds.
func UseBinaries(binaries Binaries) Option { return func(s *settings) { s.binaries = binaries } }

// StartTimeout sets how long the server may take to answer first. The default is a minute.
func StartTimeout(limit time.Duration) Option { return func(s *settings) { s.startTimeout = limit } }

func decide(dsnEnv string, options []Option) (settings, error) {
	chosen := settings{port: 5432, superuser: "postgres", maintenanceDB: "postgres", startTimeout: time.Minute}
	for _, option := range options {
		option(&chosen)
	}
	switch {
	case dsnEnv == "" || strings.ContainsAny(dsnEnv, "=\x00"):
		return chosen, wrapped(ErrInvalidArgument, "dsnEnv %q is not accepted: the name of the environment variable that the "+
			"application reads its connection string from is required; there is no default name", dsnEnv)
	case chosen.port < 1 || chosen.port > 65535:
		return chosen, wrapped(ErrInvalidArgument, "port %d is not accepted: 1 to 65535 are", chosen.port)
	case !isPlain(chosen.superuser) || strings.HasPrefix(chosen.superuser, "pg_"):
		return chosen, wrapped(ErrInvalidArgument, "superuser %q is not accepted: 1 to 63 bytes without control characters, not "+
			"beginning with pg_, are", chosen.superuser)
	case !isPlain(chosen.maintenanceDB):
		return chosen, wrapped(ErrInvalidArgument, "maintenance database %q is not accepted: 1 to 63 bytes without control "+
			"characters are", chosen.maintenanceDB)
	case chosen.startTimeout <= 0:
		return chosen, wrapped(ErrInvalidArgument, "start timeout %v is not accepted: more than 0 is", chosen.startTimeout)
	}
	return chosen, nil
}

func isPlain(name string) bool {
	return name != "" && len(name) <= nameLenMax && strings.IndexFunc(name, func(r rune) bool { return r < ' ' }) < 0
}
