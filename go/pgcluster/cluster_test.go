package pgcluster_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/smm-h/stricttest/go/pgcluster"
)

const variable = "PGCLUSTER_TEST_URL"

// ownerMode makes this binary a program that starts a cluster, says where, and waits to be killed.
const ownerMode = "PGCLUSTER_TEST_OWNER"

var (
	shared *pgcluster.Cluster
	reason string
)

func TestMain(m *testing.M) {
	if os.Getenv(ownerMode) != "" {
		ownACluster()
	}
	var err error
	shared, err = pgcluster.Start(variable)
	promised := strings.Contains(os.Getenv("HERMETIC_PROMISES"), "postgres")
	if err != nil && (promised || !errors.Is(err, pgcluster.ErrPostgresUnavailable)) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	} else if err != nil {
		reason = err.Error()
	}
	code := m.Run()
	shared.Stop()
	os.Exit(code)
}

func ownACluster() {
	cluster, err := pgcluster.Start(variable)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(cluster.DataDir(), cluster.SocketDir())
	select {}
}

func mustHavePostgres(t *testing.T) *pgcluster.Cluster {
	t.Helper()
	if shared == nil {
		t.Skip(reason)
	}
	return shared
}

func sql(t *testing.T, c *pgcluster.Cluster, database, statement string) string {
	t.Helper()
	rows, err := c.SQLIn(database, statement)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestAClusterAnswersOverItsSocketAlone(t *testing.T) {
	c := mustHavePostgres(t)
	for statement, want := range map[string]string{
		"SELECT 1, 'a b', NULL; SELECT 2": "1|a b|\n2",
		"SHOW listen_addresses":           "",
		"SHOW fsync":                      "off",
		"SHOW server_encoding":            "UTF8",
		"SELECT current_database()":       c.MaintenanceDB(),
		"COPY (SELECT 7) TO STDOUT":       "7",
	} {
		if got, err := c.SQL(statement); err != nil || got != want {
			t.Errorf("%s gave %q, %v; want %q", statement, got, err, want)
		}
	}
	if !c.Running() || !exists(c.SocketPath()) || !exists(filepath.Join(c.DataDir(), "PG_VERSION")) {
		t.Errorf("socket %s and data %s are not both there", c.SocketPath(), c.DataDir())
	}
	if got := os.Getenv(variable); got != c.BaseURL() {
		t.Errorf("%s is %q, want %q", variable, got, c.BaseURL())
	}
	want := "postgresql://postgres@/x?host=" + strings.ReplaceAll(c.SocketDir(), "/", "%2F") + "&port=5432"
	if got := c.URLFor("x"); got != want {
		t.Errorf("the URL is %q, want %q", got, want)
	}
}

func TestADatabaseIsOneTestsAlone(t *testing.T) {
	c := mustHavePostgres(t)
	var name string
	t.Run("owner", func(t *testing.T) {
		address := c.Database(t)
		if os.Getenv(variable) != address {
			t.Errorf("%s is %q, want %q", variable, os.Getenv(variable), address)
		}
		name = strings.Split(strings.TrimPrefix(address, "postgresql://postgres@/"), "?")[0]
		sql(t, c, name, "CREATE TABLE t (i int)")
	})
	if got := sql(t, c, "postgres", "SELECT count(*) FROM pg_database WHERE datname = '"+name+"'"); got != "0" {
		t.Errorf("%s is still there", name)
	}
	if os.Getenv(variable) != c.BaseURL() {
		t.Errorf("%s was not put back", variable)
	}
}

func TestDatabasesAreMadeAndDroppedByName(t *testing.T) {
	c := mustHavePostgres(t)
	for round := 0; round < 2; round++ {
		if _, err := c.CreateDatabase("orders"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.CreateDatabase("orders"); !errors.Is(err, pgcluster.ErrCluster) || !strings.Contains(err.Error(), "42P04") {
			t.Errorf("a second database of that name gave %v", err)
		}
		if err := c.DropDatabase("orders"); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.DropDatabase("never_there"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"a b", "a-b", "1a", "a\n", "a\"", strings.Repeat("x", 64)} {
		if _, err := c.CreateDatabase(name); !errors.Is(err, pgcluster.ErrInvalidArgument) {
			t.Errorf("%q gave %v", name, err)
		}
		if err := c.DropDatabase(name); !errors.Is(err, pgcluster.ErrInvalidArgument) {
			t.Errorf("%q gave %v", name, err)
		}
	}
}

func TestManyGoroutinesUseOneCluster(t *testing.T) {
	c := mustHavePostgres(t)
	var group sync.WaitGroup
	for worker := 0; worker < 4; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			name := pgcluster.GenerateName()
			if _, err := c.CreateDatabase(name); err != nil {
				t.Error(err)
			}
			if _, err := c.SQLIn(name, "CREATE TABLE t (i int)"); err != nil {
				t.Error(err)
			}
			if err := c.DropDatabase(name); err != nil {
				t.Error(err)
			}
		}()
	}
	group.Wait()
}

func TestAmbientVariablesDoNotRedirectIt(t *testing.T) {
	c := mustHavePostgres(t)
	t.Setenv("PGHOST", "/nonexistent")
	t.Setenv("PGDATABASE", "nonexistent")
	if got, err := c.SQL("SELECT current_user"); err != nil || got != "postgres" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestStopLeavesNothing(t *testing.T) {
	mustHavePostgres(t)
	t.Setenv("OWN_URL", "before")
	c, err := pgcluster.Start("OWN_URL", pgcluster.Port(6000), pgcluster.Superuser("admin"))
	if err != nil {
		t.Fatal(err)
	}
	if got := sql(t, c, "postgres", "SELECT current_user"); got != "admin" {
		t.Errorf("the superuser is %q", got)
	}
	c.Stop()
	c.Stop()
	if exists(filepath.Dir(c.DataDir())) || exists(c.SocketDir()) || c.Running() || os.Getenv("OWN_URL") != "before" {
		t.Error("something is left")
	}
	if _, err := c.SQL("SELECT 1"); !errors.Is(err, pgcluster.ErrCluster) {
		t.Errorf("a stopped cluster gave %v", err)
	}
}

func TestEphemeralEndsWithItsTest(t *testing.T) {
	mustHavePostgres(t)
	before := os.Getenv(variable)
	var dir string
	t.Run("owner", func(t *testing.T) {
		c := pgcluster.Ephemeral(t, variable)
		dir = c.DataDir()
		if os.Getenv(variable) != c.BaseURL() {
			t.Error("the URL is not exported")
		}
	})
	if exists(dir) || os.Getenv(variable) != before {
		t.Error("something is left")
	}
}

func TestAServerThatDiesIsToldWithItsLog(t *testing.T) {
	mustHavePostgres(t)
	c, err := pgcluster.Start("OWN_URL")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	pid, err := os.ReadFile(filepath.Join(c.DataDir(), "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("kill", "-KILL", strings.Split(string(pid), "\n")[0]).Run(); err != nil {
		t.Fatal(err)
	}
	_, err = c.SQL("SELECT pg_sleep(60)")
	if !errors.Is(err, pgcluster.ErrCluster) || !strings.Contains(err.Error(), "ended by itself") ||
		!strings.Contains(err.Error(), "ready to accept connections") {
		t.Errorf("a dead server gave %v", err)
	}
}

// A killed owner runs none of its own code. What it leaves is the watchdog's work.
func TestAKilledOwnerLeavesNothing(t *testing.T) {
	mustHavePostgres(t)
	for round := 0; round < 3; round++ {
		owner := exec.Command(os.Args[0])
		owner.Env = append(os.Environ(), ownerMode+"=1")
		out, err := owner.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := owner.Start(); err != nil {
			t.Fatal(err)
		}
		line, _ := bufio.NewReader(out).ReadString('\n')
		paths := strings.Fields(line)
		if len(paths) != 2 || !exists(paths[0]) {
			t.Fatalf("the owner said %q", line)
		}
		if err := owner.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		owner.Wait()
		for limit := time.Now().Add(10 * time.Second); exists(paths[0]) || exists(paths[1]); {
			if time.Now().After(limit) {
				t.Fatalf("%v are still there", paths)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

func TestMistakesAreToldBeforeAnythingRuns(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("d", 100))
	if err := os.Mkdir(long, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, mistake := range []struct {
		variable string
		option   pgcluster.Option
		want     error
	}{
		{"", pgcluster.Port(5432), pgcluster.ErrInvalidArgument},
		{"A=B", pgcluster.Port(5432), pgcluster.ErrInvalidArgument},
		{"X", pgcluster.Port(0), pgcluster.ErrInvalidArgument},
		{"X", pgcluster.Superuser("pg_x"), pgcluster.ErrInvalidArgument},
		{"X", pgcluster.MaintenanceDB(""), pgcluster.ErrInvalidArgument},
		{"X", pgcluster.StartTimeout(0), pgcluster.ErrInvalidArgument},
		{"X", pgcluster.DataParent("/nonexistent"), pgcluster.ErrPostgresUnavailable},
		{"X", pgcluster.SocketParent("/nonexistent"), pgcluster.ErrPostgresUnavailable},
		{"X", pgcluster.SocketParent(long), pgcluster.ErrSocketPathTooLong},
		{"X", pgcluster.UseBinaries(pgcluster.Binaries{Initdb: "/nonexistent/initdb"}), pgcluster.ErrPostgresUnavailable},
	} {
		if errors.Is(mistake.want, pgcluster.ErrSocketPathTooLong) {
			mustHavePostgres(t)
		}
		if c, err := pgcluster.Start(mistake.variable, mistake.option); c != nil || !errors.Is(err, mistake.want) {
			c.Stop()
			t.Errorf("%q: got %v, want %v", mistake.variable, err, mistake.want)
		}
	}
}

func TestTheKernelsLimitIsCheckedToTheByte(t *testing.T) {
	own := len("/.s.PGSQL.5432")
	dir := "/" + strings.Repeat("d", pgcluster.SUNPathMax-own-1)
	if path, err := pgcluster.CheckSocketDir(dir, 5432); err != nil || len(path) != pgcluster.SUNPathMax || path != pgcluster.SocketPathFor(dir, 5432) {
		t.Errorf("got %q, %v", path, err)
	}
	if _, err := pgcluster.CheckSocketDir(dir, 54321); !errors.Is(err, pgcluster.ErrSocketPathTooLong) {
		t.Errorf("got %v", err)
	}
	if _, err := pgcluster.CheckSocketDir("/a b", 5432); !errors.Is(err, pgcluster.ErrInvalidArgument) {
		t.Errorf("got %v", err)
	}
}
