//go:build unix

package pgcluster

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// logTail is how much of the end of the log goes into errors, in bytes.
const logTail = 4000

// endLimit is how long a server that is told to end at once may take before it is killed.
const endLimit = 5 * time.Second

// serverSettings are for data that nobody will miss.
var serverSettings = []string{
	"listen_addresses=", "fsync=off", "synchronous_commit=off", "full_page_writes=off", "wal_level=minimal",
	"max_wal_senders=0", "autovacuum=off", "max_worker_processes=0", "max_logical_replication_workers=0", "jit=off",
	"huge_pages=off", "restart_after_crash=off", "update_process_title=off", "checkpoint_timeout=1d", "wal_recycle=off",
	"wal_init_zero=off", "shared_buffers=16MB", "max_files_per_process=200", "dynamic_shared_memory_type=mmap",
	"log_checkpoints=off",
}

// watchdog is a shell that owns the server. $1 the run's directory, $2 the socket's; then the words of initdb up to "--", then
// those of the server. Its standard input is the pipe whose end tells that the owner has gone, or wants it to stop.
//
// A background command of a shell gets no standard input of its own, hence descriptor 3. The server's exit ends the waiting
// for the owner and the other way round; whichever comes first, the directories go.
const watchdog = `
run=$1; sockets=$2; shift 2
trap '' INT TERM HUP
exec 3<&0 </dev/null >>"$run/server.log" 2>&1
cd "$run/data" || exit 1
words=
while [ "$1" != -- ]; do
    words="$words '$1'"; shift
done
shift
eval "$words" 3<&- || { status=$?; echo "initdb failed with exit status $status"; cd /; rm -rf -- "$run" "$sockets"; exit "$status"; }
"$@" 3<&- &
server=$!
( read -r line; kill -QUIT "$server" ) <&3 3<&- 2>/dev/null &
waiting=$!
exec 3<&-
wait "$server"; status=$?
kill "$waiting" 2>/dev/null
# A server that was killed leaves its file, whose seventh line names the segment that guarded the data directory.
set -- $(sed -n 7p postmaster.pid 2>/dev/null)
[ -z "$2" ] || ipcrm -m "$2"
cd /
rm -rf -- "$run" "$sockets"
exit "$status"
`

// run is a started watchdog with the directories of its server.
type run struct {
	name      string
	dir       string
	socketDir string
	strategy  string
	command   *exec.Cmd
	pipe      io.WriteCloser
	logFile   *os.File
	lock      *runLock
	ended     chan struct{}
	status    error
}

func (r *run) dataDir() string { return filepath.Join(r.dir, "data") }

func launch(chosen *settings) (*run, error) {
	if chosen.binaries.Initdb == "" {
		found, err := FindBinaries()
		if err != nil {
			return nil, err
		}
		chosen.binaries = found
	}
	dataParent, err := chooseParent("DataParent", chosen.dataParent, "/dev/shm", os.TempDir())
	if err != nil {
		return nil, err
	}
	socketParent, err := chooseParent("SocketParent", chosen.socketParent, "/dev/shm", "/tmp", os.TempDir())
	if err != nil {
		return nil, err
	}
	name := randomHex(6)
	r := &run{name: name, dir: filepath.Join(dataParent, "hermetic-pg-"+name), socketDir: filepath.Join(socketParent, "hpg-"+name)}
	if _, err := CheckSocketDir(r.socketDir, chosen.port); err != nil {
		return nil, err
	}
	who, err := identity(dataParent, socketParent)
	if err != nil {
		return nil, err
	}
	major, err := majorOf(chosen.binaries.postgres())
	if err != nil {
		return nil, err
	}
	if major >= 15 {
		// Copying files is the quickest way in memory; before this release it was the only one.
		r.strategy = " STRATEGY FILE_COPY"
	}
	if r.lock, err = newRunLock(r); err != nil {
		return nil, err
	}
	if err := r.start(chosen, who, major); err != nil {
		r.clear()
		return nil, err
	}
	return r, nil
}

func (r *run) start(chosen *settings, who *syscall.Credential, major int) error {
	for _, dir := range []string{r.dir, r.socketDir, r.dataDir()} {
		err := os.Mkdir(dir, 0o700)
		if err == nil && who != nil {
			err = os.Chown(dir, int(who.Uid), int(who.Gid))
		}
		if err != nil {
			return wrapped(ErrPostgresUnavailable, "cannot make %s: %v", dir, err)
		}
	}
	log, err := os.OpenFile(filepath.Join(r.dir, "server.log"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil && who != nil {
		err = log.Chown(int(who.Uid), int(who.Gid))
	}
	if err != nil {
		return wrapped(ErrPostgresUnavailable, "cannot make the log: %v", err)
	}
	r.logFile = log
	words := []string{"-c", watchdog, "pgcluster", r.dir, r.socketDir, chosen.binaries.Initdb, "-D", r.dataDir(), "-U", chosen.superuser,
		"--no-sync", "--no-locale", "--encoding=UTF8", "--wal-segsize=1", "--auth-local=trust", "--auth-host=reject"}
	for i, word := range words[5:] {
		// The shell reads these once more.
		words[5+i] = strings.ReplaceAll(word, "'", `'\''`)
	}
	if major >= 18 {
		words = append(words, "--no-data-checksums")
	}
	words = append(words, "--", chosen.binaries.postgres(), "-D", r.dataDir(), "-k", r.socketDir, "-p", strconv.Itoa(chosen.port))
	for _, setting := range serverSettings {
		words = append(words, "-c", setting)
	}
	r.command = exec.Command("/bin/sh", words...)
	r.command.Dir = "/"
	r.command.Env = []string{"PATH=" + chosen.binaries.BinDir() + ":/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	// A session of its own: signals to the test binary's group do not reach it.
	r.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: who}
	if r.pipe, err = r.command.StdinPipe(); err != nil {
		return wrapped(ErrPostgresUnavailable, "cannot make a pipe: %v", err)
	}
	if err := r.command.Start(); err != nil {
		return wrapped(ErrPostgresUnavailable, "cannot start /bin/sh: %v", err)
	}
	r.ended = make(chan struct{})
	go func() {
		r.status = r.command.Wait()
		close(r.ended)
	}()
	return nil
}

// hasEnded tells whether the server has ended, and with it the watchdog.
func (r *run) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// endsSoon gives a server whose connection broke a moment to end.
func (r *run) endsSoon() bool {
	select {
	case <-r.ended:
		return true
	case <-time.After(2 * time.Second):
		return false
	}
}

func (r *run) obituary(what string) error {
	how := "exit status 0"
	if r.status != nil {
		how = r.status.Error()
	}
	return failure(what+", with "+how, "", "", r.log())
}

// log is the end of the server's log, also after its file was removed.
func (r *run) log() string {
	info, err := r.logFile.Stat()
	if err != nil {
		return ""
	}
	from := info.Size() - logTail
	if from < 0 {
		from = 0
	}
	text := make([]byte, info.Size()-from)
	size, _ := r.logFile.ReadAt(text, from)
	text = text[:size]
	if at := bytes.IndexByte(text, '\n'); from > 0 && at >= 0 {
		text = text[at+1:]
	}
	return string(text)
}

// end closes the pipe and waits for the watchdog, which ends the server and removes the directories.
func (r *run) end() {
	r.pipe.Close()
	select {
	case <-r.ended:
	case <-time.After(endLimit):
		r.command.Process.Kill()
		<-r.ended
	}
	r.clear()
}

// clear removes whatever is left of the run: its processes, its directories, its file.
func (r *run) clear() {
	if r.logFile != nil {
		defer r.logFile.Close()
	}
	remains(r.dir, r.socketDir)
	r.lock.release()
}

// majorOf asks a server for its release.
func majorOf(postgres string) (int, error) {
	printed, err := exec.Command(postgres, "--version").Output()
	if err != nil {
		return 0, wrapped(ErrPostgresUnavailable, "cannot run %s --version: %v; install the server package", postgres, err)
	}
	line := strings.TrimSpace(string(printed))
	var major int
	if at := strings.Index(line, "(PostgreSQL) "); at >= 0 {
		fmt.Sscanf(line[at+len("(PostgreSQL) "):], "%d", &major)
	}
	if major < 13 {
		return 0, wrapped(ErrPostgresUnavailable, "%q is not supported: PostgreSQL from 13 on is", line)
	}
	return major, nil
}
