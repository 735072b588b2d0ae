//go:build !unix

package pgcluster

import "path/filepath"

// run cannot exist on a system without unix sockets and process groups; Start says so.
type run struct{ dir, socketDir, strategy string }

func (r *run) dataDir() string            { return filepath.Join(r.dir, "data") }
func (r *run) hasEnded() bool             { return true }
func (r *run) endsSoon() bool             { return true }
func (r *run) obituary(what string) error { return failure(what, "", "", "") }
func (r *run) log() string                { return "" }
func (r *run) end()                       {}

func launch(*settings) (*run, error) {
	return nil, wrapped(ErrPostgresUnavailable, "clusters need unix sockets and process groups; this system has none")
}
