// Package pgcluster boots throwaway PostgreSQL clusters for tests: one for a test binary, one database for a test.
//
//	var cluster *pgcluster.Cluster
//
//	func TestMain(m *testing.M) {
//		var err error
//		cluster, err = pgcluster.Start("MYAPP_DATABASE_URL")
//		if err != nil && !errors.Is(err, pgcluster.ErrPostgresUnavailable) {
//			fmt.Fprintln(os.Stderr, err)
//			os.Exit(1)
//		}
//		code := m.Run()
//		cluster.Stop()
//		os.Exit(code)
//	}
//
//	func TestOrders(t *testing.T) {
//		if cluster == nil {
//			t.Skip("no PostgreSQL on this machine")
//		}
//		url := cluster.Database(t)
//		...
//	}
//
// The server is the child of a watchdog, a small shell that waits on a pipe whose other end only the test binary holds. When
// the binary ends, however it does (SIGKILL, a cancelled job, a panic), the kernel closes that end, and the watchdog ends the
// server and removes its directories. What a watchdog that was killed itself leaves is removed by the next start, of this
// package or of the command hermetic pg sweep: a run is dead when the lock on its file is free.
//
// Nothing is linked in: initdb and postgres are the machine's own, statements go over the socket by a client of a hundred
// lines. Root's servers run as the user postgres, or nobody.
package pgcluster
