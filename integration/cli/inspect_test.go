package cli_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
)

// field returns the value on a line of "show".
func field(t *testing.T, text, name string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+"  "); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Errorf("no %q in %q", name, text)
	return ""
}

// TestShow tests what show prints for a key, in both formats.
func TestShow(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.run(t, "show", key)
		p.exits(0)
		if got := field(t, read(p.stdout), "held by"); got != "nobody" {
			t.Errorf("a free key is held by %q", got)
		}
		lock, err := e.dial(t, "the holder").Acquire(limited(t), key, holdfast.WithData([]byte("some data")))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"key": key, "held by": "the holder", "token": lock.Token().String(), "data": "some data"}
		if e.name == "zookeeper" {
			waiting := e.start(t, "run", "-k", key, "--lease", calm, "--owner", "the waiter", "--data", "patience", "true")
			waits(t, e, key)
			defer waiting.wait()
			want["waiting 1"] = "the waiter, since "
		} else {
			want["lease"] = clientLease.String()
		}
		p = e.run(t, "show", key)
		p.exits(0)
		for name, text := range want {
			if got := field(t, read(p.stdout), name); !strings.HasPrefix(got, text) {
				t.Errorf("show says %s is %q, want %q", name, got, text)
			}
		}
		p = e.run(t, "show", key, "-o", "json")
		p.exits(0)
		var got struct {
			Key, Owner, Data string
			Held             bool
			Token            holdfast.Token
			Since            string
			QueuedAt         string `json:"queued_at"`
			Queue            []struct{ Owner, Data string }
		}
		if err := json.Unmarshal([]byte(read(p.stdout)), &got); err != nil {
			t.Fatalf("%v: %s", err, read(p.stdout))
		}
		if got.Key != key || !got.Held || got.Owner != "the holder" || got.Token != lock.Token() || got.Data != "some data" ||
			(got.Since != "") != (e.name == "dynamodb") || (got.QueuedAt != "") != (e.name == "zookeeper") {
			t.Errorf("show -o json says %+v", got)
		}
		if e.name == "zookeeper" && (len(got.Queue) != 1 || got.Queue[0].Owner != "the waiter" || got.Queue[0].Data != "patience") {
			t.Errorf("show -o json tells of the queue %+v", got.Queue)
		}
		if err := lock.Release(limited(t)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestList tests ls: a line for each key held below a prefix.
func TestList(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		base := newKey(t)
		holder := e.dial(t, "the holder")
		want := []string{base + "/a", base + "/b", base + "/c"}
		for _, key := range append([]string{base + ".other"}, want...) {
			if _, err := holder.Acquire(limited(t), key); err != nil {
				t.Fatal(err)
			}
		}
		p := e.run(t, "ls", base+"/")
		p.exits(0)
		lines := slices.Collect(strings.Lines(read(p.stdout)))
		if len(lines) != 4 || !strings.HasPrefix(lines[0], "KEY ") {
			t.Errorf("ls printed %q, want a header and 3 keys", lines)
		}
		p = e.run(t, "ls", base+"/", "--output", "json")
		p.exits(0)
		var keys []string
		for line := range strings.Lines(read(p.stdout)) {
			var lock struct{ Key, Owner string }
			if err := json.Unmarshal([]byte(line), &lock); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			if lock.Owner != "the holder" {
				t.Errorf("ls tells of %+v", lock)
			}
			keys = append(keys, lock.Key)
		}
		if slices.Sort(keys); !slices.Equal(keys, want) {
			t.Errorf("ls told of %q, want %q", keys, want)
		}
		none := e.run(t, "ls", base+"/none/")
		none.exits(0)
		none.prints("")
	})
}

// TestListWithCorruptItems tests hazard C1: corrupt items hide no lock in either format,
// and another client's long owner name makes no long lines.
func TestListWithCorruptItems(t *testing.T) {
	t.Parallel()
	e := newDynamoDB(t)
	base := newKey(t)
	if _, err := e.dial(t, "the holder").Acquire(limited(t), base+"/held"); err != nil {
		t.Fatal(err)
	}
	item := func(key, owner string, token types.AttributeValue) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{
			dynamoserver.DefaultKey: attrS(base + "/" + key), "guid": &types.AttributeValueMemberB{Value: make([]byte, 64)},
			"fencingToken": token, "leaseDurationMs": attrN(10_000), "lockAcquiredTimeUnixMs": attrN(1), "owner": attrS(owner),
		}
	}
	putItem(t, e.direct, item("corrupt", "x", attrS("seven")))
	putItem(t, e.direct, item("long", strings.Repeat("long ", 60_000), attrN(7)))
	for _, output := range []string{"text", "json"} {
		p := e.run(t, "ls", "-o", output)
		p.exits(69)
		p.says(base + "/corrupt")
		for _, want := range []string{base + "/held", "the holder", base + "/long"} {
			if !strings.Contains(read(p.stdout), want) {
				t.Errorf("ls -o %s does not tell of %q", output, want)
			}
		}
		if n := len(read(p.stdout)); output == "text" && n > 10_000 {
			t.Errorf("ls has printed %d bytes", n)
		}
	}
	p := e.run(t, "run", "-k", base+"/long", "--try", "--", "true")
	p.exits(75)
	if n := len(read(p.stderr)); n > 5000 {
		t.Errorf("an error of %d bytes", n)
	}
}

// TestForeignText tests that text in other clients' locks cannot harm the terminal: the
// tool prints no control character and no change of writing direction from it, and a line
// stays a line.
func TestForeignText(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		evil := "\x1b[2J\x1b]0;title\a\r\n\tforged  line\u202e\u009b31m\xff\x00"
		owner := strings.TrimSuffix(evil, "\xff\x00") // an owner's name is UTF-8 without NUL
		if _, err := e.dial(t, owner).Acquire(limited(t), key, holdfast.WithData([]byte(evil))); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"show", key},
			{"ls", key},
			{"break", key, "--token", "1", "--yes"},
			{"run", "-k", key, "--try", "true"},
			{"show", key, "-o", "json"},
			{"ls", key, "-o", "json"},
			{"__complete", "show", key},
			{"break", key, "--yes"},
		} {
			p := e.run(t, args...)
			for name, text := range map[string]string{"stdout": read(p.stdout), "stderr": read(p.stderr)} {
				if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
					t.Errorf("holdfast %s: %s has %q", args, name, text[i:])
				}
				if strings.Contains(text, "\nforged") || strings.Contains(text, "\n\tforged") {
					t.Errorf("holdfast %s: %s has a forged line: %q", args, name, text)
				}
			}
		}
	})
}

// TestBreak checks that break ends exactly the grant that was meant, and only with
// consent.
func TestBreak(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		p := e.run(t, "break", key, "--yes")
		p.exits(1)
		p.says("nobody holds ")
		lock, err := e.dial(t, "the holder").Acquire(limited(t), key)
		if err != nil {
			t.Fatal(err)
		}
		p = e.run(t, "break", key)
		p.exits(64)
		p.says("give --yes")
		p = launch(t, e.direct, strings.NewReader("y\n"), "break", key)
		p.exits(64)
		p = e.run(t, "break", key, "--yes", "--token", (lock.Token() + 1).String())
		p.exits(1)
		p.says("with token " + lock.Token().String() + ", not ")
		if err := lock.Verify(limited(t)); err != nil {
			t.Fatal(err)
		}
		p = e.run(t, "break", key, "-y", "--token", lock.Token().String())
		p.exits(0)
		p.prints("broke the lock of " + key + ", which the holder held with token " + lock.Token().String() + "\n")
		if err := lock.Verify(limited(t)); err == nil {
			t.Error("the lock was not broken")
		}

		again := e.acquire(t, key, "another")
		p = e.run(t, "break", key, "--yes", "-o", "json")
		p.exits(0)
		var told struct {
			Key, Owner string
			Token      holdfast.Token
		}
		if err := json.Unmarshal([]byte(read(p.stdout)), &told); err != nil {
			t.Fatalf("%v: %s", err, read(p.stdout))
		}
		if told.Key != key || told.Owner != "another" || told.Token != again.Token() {
			t.Errorf("break -o json tells of %+v", told)
		}
	})
}

// TestBrokenPipe checks that a command whose reader goes away ends quietly: without a
// message, and with the usual status.
func TestBrokenPipe(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		if _, err := e.dial(t, "").Acquire(limited(t), key); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"ls"}, {"ls", "-o", "json"}, {"show", key}, {"show", key, "-o", "json"}, {"version"}, {"completion", "bash"}} {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			_ = r.Close()
			p := launchTo(t, w, e.direct, args...)
			_ = w.Close()
			p.exits(141)
			p.says("")
		}
	})
}

// TestTableCreate checks that table create creates a table, accepts a suitable one, and
// refuses an unsuitable one.
func TestTableCreate(t *testing.T) {
	t.Parallel()
	e := newDynamoDB(t)
	create := func(args ...string) *tool { return e.run(t, append([]string{"table", "create"}, args...)...) }
	create().exits(0)
	fresh := "--table=" + strings.ReplaceAll(newKey(t), ".", "-")
	for range 2 {
		p := create(fresh, "-o", "json")
		p.exits(0)
		p.prints(`{"table":"` + strings.TrimPrefix(fresh, "--table=") + `","ready":true}` + "\n")
	}
	e.run(t, "run", fresh, "-k", "a", "--lease", calm, "true").exits(0)
	p := create(fresh, "--partition-key", "other:N")
	p.exits(69)
	p.says(`not "other"`)
	p = create("--engine", "zookeeper")
	p.exits(64)
}
