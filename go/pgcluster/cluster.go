package pgcluster

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// connectPoll is the time between two tries to connect to a server that starts.
	connectPoll = time.Millisecond
	// sessionPoll is the time between two looks at sessions that end.
	sessionPoll = 500 * time.Microsecond
	// sessionLimit is how long sessions may take to end when they are told to.
	sessionLimit = 5 * time.Second
)

// A Cluster is a running server with the databases of a test binary. Its methods may be called from any goroutine. A nil
// Cluster can be stopped, and does not run.
type Cluster struct {
	dsnEnv   string
	settings settings
	run      *run

	mutex       sync.Mutex
	session     *connection
	stopped     bool
	previous    string
	hadPrevious bool
}

// Start starts a cluster and exports its base URL under dsnEnv until Stop. For TestMain.
//
// It returns an ErrPostgresUnavailable on a machine that cannot host one, an ErrInvalidArgument or ErrSocketPathTooLong before
// anything runs, and an ErrCluster with the server's log. Nothing is left behind.
func Start(dsnEnv string, options ...Option) (*Cluster, error) {
	chosen, err := decide(dsnEnv, options)
	if err != nil {
		return nil, err
	}
	started, err := launch(&chosen)
	if err != nil {
		return nil, err
	}
	c := &Cluster{dsnEnv: dsnEnv, settings: chosen, run: started}
	if err := c.waitUntilReady(); err != nil {
		started.end()
		return nil, err
	}
	c.previous, c.hadPrevious = os.LookupEnv(dsnEnv)
	os.Setenv(dsnEnv, c.BaseURL())
	return c, nil
}

// Ephemeral starts a cluster for one test, exports its base URL under dsnEnv, and stops it when the test ends. It fails the
// test where Start returns an error, and panics if the test called t.Parallel, because a variable belongs to the process.
func Ephemeral(t testing.TB, dsnEnv string, options ...Option) *Cluster {
	t.Helper()
	if dsnEnv != "" && !strings.ContainsAny(dsnEnv, "=\x00") {
		t.Setenv(dsnEnv, os.Getenv(dsnEnv))
	}
	c, err := Start(dsnEnv, options...)
	if err != nil {
		t.Fatalf("%v", err)
		return nil
	}
	t.Cleanup(c.Stop)
	return c
}

func (c *Cluster) waitUntilReady() error {
	limit := time.Now().Add(c.settings.startTimeout)
	for {
		session, err := connect(c.SocketPath(), c.settings.superuser, c.settings.maintenanceDB)
		if err == nil {
			c.session = session
			return nil
		}
		if code := codeOf(err); code != "" && code != codeStartingUp {
			return failure("the server refuses: "+err.Error(), "", "", c.run.log())
		}
		if c.run.hasEnded() {
			return c.run.obituary("the server ended while starting")
		}
		if time.Now().After(limit) {
			return failure(fmt.Sprintf("the server took longer than StartTimeout (%v) to start", c.settings.startTimeout), "", "", c.run.log())
		}
		time.Sleep(connectPoll)
	}
}

// Stop ends the cluster: its processes, socket and data are gone when it returns, and the variable holds what it held before.
// The second time it does nothing.
func (c *Cluster) Stop() {
	if c == nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.stopped {
		return
	}
	c.stopped = true
	if c.session != nil {
		c.session.close()
		c.session = nil
	}
	if c.hadPrevious {
		os.Setenv(c.dsnEnv, c.previous)
	} else {
		os.Unsetenv(c.dsnEnv)
	}
	c.run.end()
}

// Running tells whether the cluster has not been stopped.
func (c *Cluster) Running() bool {
	if c == nil {
		return false
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return !c.stopped
}

// SocketDir is the directory of the server's socket.
func (c *Cluster) SocketDir() string { return c.run.socketDir }

// DataDir is the server's data directory.
func (c *Cluster) DataDir() string { return c.run.dataDir() }

// SocketPath is the path of the server's socket.
func (c *Cluster) SocketPath() string { return SocketPathFor(c.run.socketDir, c.settings.port) }

// MaintenanceDB is the database that statements go to where none is named.
func (c *Cluster) MaintenanceDB() string { return c.settings.maintenanceDB }

// BaseURL is the URL of the maintenance database.
func (c *Cluster) BaseURL() string { return c.URLFor(c.settings.maintenanceDB) }

// URLFor is the URL of a database, whether there is one of that name or not.
func (c *Cluster) URLFor(dbname string) string {
	return fmt.Sprintf("postgresql://%s@/%s?host=%s&port=%d", url.PathEscape(c.settings.superuser), url.PathEscape(dbname),
		url.QueryEscape(c.run.socketDir), c.settings.port)
}

// Database makes a database for a test, exports its URL under the cluster's variable, and drops it when the test ends. It
// panics if the test called t.Parallel: there, use CreateDatabase and hand the URL on.
func (c *Cluster) Database(t testing.TB) string {
	t.Helper()
	name := GenerateName()
	address, err := c.CreateDatabase(name)
	if err != nil {
		t.Fatalf("%v", err)
		return ""
	}
	t.Cleanup(func() {
		t.Helper()
		if err := c.DropDatabase(name); err != nil {
			t.Errorf("%v", err)
		}
	})
	t.Setenv(c.dsnEnv, address)
	return address
}

// CreateDatabase makes a database, under a fresh name if name is empty, and returns its URL.
func (c *Cluster) CreateDatabase(name string) (string, error) {
	if name == "" {
		name = GenerateName()
	}
	if err := checkName(name); err != nil {
		return "", err
	}
	statement := `CREATE DATABASE "` + name + `"` + c.run.strategy
	if _, err := c.admin(statement); err != nil {
		return "", c.explain(statement, err)
	}
	return c.URLFor(name), nil
}

// DropDatabase ends a database and its sessions. It does nothing where there is none of that name.
func (c *Cluster) DropDatabase(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	here := "FROM pg_stat_activity WHERE datname = " + literal(name)
	statement := `DROP DATABASE IF EXISTS "` + name + `"`
	for limit := time.Now().Add(sessionLimit); ; time.Sleep(sessionPoll) {
		// The server itself waits for sessions in steps of 100 ms; looking for them is quicker.
		ended, err := c.admin("SELECT pg_terminate_backend(pid) " + here)
		if err != nil {
			return c.explain(statement, err)
		}
		if len(ended) > 0 && time.Now().Before(limit) {
			continue
		}
		_, err = c.admin(statement)
		if err == nil {
			return nil
		}
		if codeOf(err) != codeObjectInUse || time.Now().After(limit) {
			return c.explain(statement, err)
		}
	}
}

// SQL runs statements in the maintenance database. Rows come as lines, columns separated by |, NULL empty.
func (c *Cluster) SQL(statement string) (string, error) {
	return c.SQLIn(c.settings.maintenanceDB, statement)
}

// SQLIn runs statements in a database, in a session of their own.
func (c *Cluster) SQLIn(dbname, statement string) (string, error) {
	if !c.Running() {
		return "", wrapped(ErrCluster, "the cluster is not running: start one")
	}
	session, err := connect(c.SocketPath(), c.settings.superuser, dbname)
	if err != nil {
		return "", c.explain(statement, err)
	}
	defer session.close()
	rows, err := session.query(statement)
	if err != nil {
		return "", c.explain(statement, err)
	}
	return strings.TrimSpace(strings.Join(rows, "\n")), nil
}

// admin runs a statement in the session that is kept for the cluster's own work.
func (c *Cluster) admin(statement string) ([]string, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.stopped {
		return nil, errors.New("the cluster is not running: start one")
	}
	if c.session == nil {
		session, err := connect(c.SocketPath(), c.settings.superuser, c.settings.maintenanceDB)
		if err != nil {
			return nil, err
		}
		c.session = session
	}
	rows, err := c.session.query(statement)
	if err != nil && codeOf(err) == "" {
		// The connection is broken; the next statement gets another.
		c.session.close()
		c.session = nil
	}
	return rows, err
}

// explain makes an error of a failed statement. A broken connection may be the first sign that the server has ended.
func (c *Cluster) explain(statement string, err error) error {
	if codeOf(err) == "" && c.run.endsSoon() {
		return c.run.obituary("the server has ended by itself")
	}
	return failure("the statement failed\n"+err.Error(), statement, "", c.run.log())
}
