package fencing_test

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast/fencing/sqlfence"
	"github.com/holdfast-go/holdfast/integration/internal/child"
)

// A database is a real one, with the tables of the tests.
type database struct {
	sqlfence.Dialect
	name string
	bind *strings.Replacer // turns ? into the database's placeholders
	open func() *sql.DB    // a pool of its own, as of another replica
	// restart kills the server and starts it again; nil for SQLite.
	restart func(t testing.TB)
}

// servers reports whether the tests use servers; otherwise they use SQLite.
func servers() bool { return os.Getenv("HOLDFAST_FENCING") == "servers" }

// TestDatabases runs the tests that need a database on each. They share the tables, and use other resources.
func TestDatabases(t *testing.T) {
	starts := []func(testing.TB) *database{startSQLite}
	if servers() {
		starts = append(starts, startPostgreSQL, startMariaDB)
	}
	for _, start := range starts {
		d := start(t)
		db := d.open()
		for _, statement := range []string{
			d.Schema(), d.Schema(), // it may be repeated
			`CREATE TABLE account (id INTEGER PRIMARY KEY, balance BIGINT NOT NULL)`,
			`CREATE TABLE history (number BIGINT NOT NULL, token BIGINT NOT NULL)`,
			`CREATE INDEX history_number ON history (number)`,
		} {
			if _, err := db.Exec(statement); err != nil {
				t.Fatalf("%s: %s: %v", d.name, statement, err)
			}
		}
		for name, test := range map[string]func(*testing.T, *database){
			"claims": testClaims, "a claim waits": testWaits, "the newest token counts": testNewest, "deadlock": testDeadlock, "hold": testHold,
			"race": testSQLRace, "Serial": testSerial, "PassOn": testPassOn,
		} {
			t.Run(d.name+"/"+name, func(t *testing.T) { test(t, d) })
		}
	}
}

// opener makes pools that are closed at the end of the test.
func opener(t testing.TB, driver, source string) func() *sql.DB {
	return func() *sql.DB {
		db, err := sql.Open(driver, source)
		must(t, err)
		t.Cleanup(func() { db.Close() })
		return db
	}
}

func startSQLite(t testing.TB) *database {
	source := "file:" + filepath.Join(t.TempDir(), "db") + "?_pragma=busy_timeout(3000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)"
	return &database{Dialect: sqlfence.SQLite, name: "SQLite", bind: strings.NewReplacer(), open: opener(t, "sqlite", source)}
}

func startPostgreSQL(t testing.TB) *database {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(found) == 0 {
		t.Fatal("PostgreSQL is missing: integration/setup.sh fencing")
	}
	bin := found[len(found)-1] + "/"
	s := newServer(t, syscall.SIGQUIT) // which it passes on to its children
	s.prepare(t, bin+"initdb", "-D", s.data, "-U", "holdfast", "-A", "trust", "--no-sync", "-E", "UTF8")
	d := &database{Dialect: sqlfence.PostgreSQL, name: "PostgreSQL", bind: strings.NewReplacer("?1", "$1", "?2", "$2")}
	d.open = opener(t, "pgx", "postgres://holdfast@127.0.0.1:"+s.port+"/postgres?sslmode=disable")
	s.run(t, d, bin+"postgres", "-D", s.data, "-p", s.port, "-c", "unix_socket_directories=", "-c", "fsync=off")
	return d
}

func startMariaDB(t testing.TB) *database {
	if _, err := exec.LookPath("mariadb-install-db"); err != nil {
		t.Fatal("MariaDB is missing: integration/setup.sh fencing")
	}
	s := newServer(t, syscall.SIGKILL)
	s.prepare(t, "mariadb-install-db", "--no-defaults", "--datadir="+s.data, "--auth-root-authentication-method=normal", "--skip-test-db")
	d := &database{Dialect: sqlfence.MySQL, name: "MariaDB", bind: strings.NewReplacer("?1", "?", "?2", "?")}
	source := "root@tcp(127.0.0.1:" + s.port + ")/"
	d.open = opener(t, "mysql", source)
	s.run(
		t, d, "/usr/sbin/mariadbd", "--no-defaults", "--datadir="+s.data, "--port="+s.port, "--bind-address=127.0.0.1",
		"--socket="+s.data+"/socket", "--innodb-flush-log-at-trx-commit=2",
	)
	_, err := d.open().Exec("CREATE DATABASE test")
	must(t, err)
	d.open = opener(t, "mysql", source+"test")
	return d
}

// A server is a child process with a temporary directory. PostgreSQL refuses to run as root, so root starts servers as another user.
type server struct {
	data, log, port string
	user            []string       // the command that changes the user
	crash           syscall.Signal // ends the server at once
	process         *child.Process
}

func newServer(t testing.TB, crash syscall.Signal) *server {
	port, err := child.LeasePort()
	must(t, err)
	dir, lock, err := child.NewDir("holdfast-fencing-")
	must(t, err)
	s := &server{data: filepath.Join(dir, "data"), log: filepath.Join(dir, "log"), port: strconv.Itoa(port.Port), crash: crash}
	t.Cleanup(func() {
		s.kill()
		port.Release()
		os.RemoveAll(dir)
		lock.Close()
	})
	if os.Getuid() == 0 {
		const other = 65534
		s.user = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--pdeathsig=KILL"}
		must(t, os.Chown(dir, other, other))
	}
	return s
}

func (s *server) kill() {
	if s.process != nil {
		_ = s.process.Signal(s.crash)
		<-s.process.Done()
	}
}

// prepare runs a command to its end.
func (s *server) prepare(t testing.TB, command ...string) {
	t.Helper()
	command = slices.Concat(s.user, command)
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
}

// run starts the server, and waits until it answers.
func (s *server) run(t testing.TB, d *database, command ...string) {
	command = slices.Concat(s.user, command)
	d.restart = func(t testing.TB) {
		s.kill()
		var err error
		if s.process, err = child.Start(s.log, false, command[0], command[1:]...); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.process.Await(ctx, d.open().PingContext); err != nil {
			t.Fatalf("%s: %v\n%s", d.name, err, child.Tail(s.log))
		}
	}
	d.restart(t)
}
