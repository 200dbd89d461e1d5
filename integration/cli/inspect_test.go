package cli_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
)

// field returns the value on a line of "show".
func field(t *testing.T, text, name string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + `  +(.*)$`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no %q in %q", name, text)
	}
	return found[1]
}

// TestShow tests what show prints for a key, in both formats.
func TestShow(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		if got := field(t, e.run(t, "show", key).output(), "held by"); got != "nobody" {
			t.Errorf("a free key is held by %q", got)
		}
		lock := e.acquire(t, key, "the holder", holdfast.WithData([]byte("some data")))
		want := map[string]string{"key": key, "held by": "the holder", "token": lock.Token().String(), "data": "some data"}
		if e.name == "zookeeper" {
			waiting := e.start(t, "run", "-k", key, "--lease", calm, "--owner", "the waiter", "--data", "patience", "true")
			waits(t, e, key)
			defer waiting.wait()
			want["waiting 1"] = "the waiter, since "
		} else {
			want["lease"] = clientLease.String()
		}
		shown := e.run(t, "show", key).output()
		for name, text := range want {
			if got := field(t, shown, name); !strings.HasPrefix(got, text) {
				t.Errorf("show says %s is %q, want %q", name, got, text)
			}
		}
		var got struct {
			Key, Owner, Data string
			Held             bool
			Token            holdfast.Token
			Since            string
			QueuedAt         string `json:"queued_at"`
			Queue            []struct{ Owner, Data string }
		}
		decode(t, e.run(t, "show", key, "-o", "json").output(), &got)
		if got.Key != key || !got.Held || got.Owner != "the holder" || got.Token != lock.Token() || got.Data != "some data" ||
			(got.Since != "") != (e.name == "dynamodb") || (got.QueuedAt != "") != (e.name == "zookeeper") {
			t.Errorf("show -o json says %+v", got)
		}
		if e.name == "zookeeper" && (len(got.Queue) != 1 || got.Queue[0].Owner != "the waiter" || got.Queue[0].Data != "patience") {
			t.Errorf("show -o json tells of the queue %+v", got.Queue)
		}
		release(t, lock)
	})
}

// TestList tests ls: a line for each key held below a prefix.
func TestList(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		base := newKey(t)
		holder := e.dial(t, "the holder")
		want := []string{base + "/a", base + "/b", base + "/c"}
		for _, key := range append([]string{base + ".other"}, want...) {
			_, err := holder.Acquire(limited(t), key)
			must(t, err)
		}
		lines := slices.Collect(strings.Lines(e.run(t, "ls", base+"/").output()))
		if len(lines) != 4 || !strings.HasPrefix(lines[0], "KEY ") {
			t.Errorf("ls printed %q, want a header and 3 keys", lines)
		}
		var keys []string
		for line := range strings.Lines(e.run(t, "ls", base+"/", "--output", "json").output()) {
			var lock struct{ Key, Owner string }
			decode(t, line, &lock)
			if lock.Owner != "the holder" {
				t.Errorf("ls tells of %+v", lock)
			}
			keys = append(keys, lock.Key)
		}
		if slices.Sort(keys); !slices.Equal(keys, want) {
			t.Errorf("ls told of %q, want %q", keys, want)
		}
		e.run(t, "ls", base+"/none/").exits(0).prints("")
	})
}

// TestListWithCorruptItems tests hazard C1: corrupt items hide no lock, and long owner names are cut.
func TestListWithCorruptItems(t *testing.T) {
	begin(t)
	e := newDynamoDB(t)
	base := newKey(t)
	e.acquire(t, base+"/held", "the holder")
	item := func(key, owner string, token types.AttributeValue) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{
			dynamoserver.DefaultKey: attrS(base + "/" + key), "guid": &types.AttributeValueMemberB{Value: make([]byte, 64)},
			"fencingToken": token, "leaseDurationMs": attrN(10_000), "lockAcquiredTimeUnixMs": attrN(time.Now().UnixMilli()), "owner": attrS(owner),
		}
	}
	putItem(t, e.direct, item("corrupt", "x", attrS("seven")))
	putItem(t, e.direct, item("long", strings.Repeat("long ", 60_000), attrN(7)))
	for _, output := range []string{"text", "json"} {
		p := e.run(t, "ls", "-o", output)
		p.exits(69, base+"/corrupt")
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

// TestForeignText checks that text in other clients' locks cannot harm the terminal or forge a line.
func TestForeignText(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		evil := "\x1b[2J\x1b]0;title\a\r\n\tforged  line\u202e\u009b31m\xff\x00"
		owner := strings.TrimSuffix(evil, "\xff\x00") // an owner's name is UTF-8 without NUL
		e.acquire(t, key, owner, holdfast.WithData([]byte(evil)))
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
			e.run(t, args...).harmless()
		}
	})
}

// TestBreak checks that break ends exactly the grant that was meant, and only with consent.
func TestBreak(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		when := ""
		if e.name == "dynamodb" {
			when = fmt.Sprintf("; it is free when its holder has heard of it, or somebody has waited for %v", dynamolock.DefaultLease)
		}
		e.run(t, "break", key, "--yes").exits(1, "nobody holds ")
		lock := e.acquire(t, key, "the holder")
		e.run(t, "break", key).exits(64, "give --yes")
		launch(t, e.direct, strings.NewReader("y\n"), "break", key).exits(64)
		e.run(t, "break", key, "--yes", "--token", (lock.Token()+1).String()).exits(1, "with token "+lock.Token().String()+", not ")
		must(t, lock.Verify(limited(t)))
		e.run(t, "break", key, "-y", "--token", lock.Token().String()).exits(0).
			prints("broke the lock of " + key + ", which the holder held with token " + lock.Token().String() + when + "\n")
		if err := lock.Verify(limited(t)); err == nil {
			t.Error("the lock was not broken")
		}

		again := e.acquire(t, key, "another")
		var told struct {
			Key, Owner string
			Token      holdfast.Token
		}
		decode(t, e.run(t, "break", key, "--yes", "-o", "json").output(), &told)
		if told.Key != key || told.Owner != "another" || told.Token != again.Token() {
			t.Errorf("break -o json tells of %+v", told)
		}

		last := e.acquire(t, key, "the last")
		e.run(t, "break", key, "--yes", "--now").exits(0).
			prints("broke the lock of " + key + ", which the last held with token " + last.Token().String() + "\n")
		if shown := e.run(t, "show", key).output(); !strings.Contains(shown, "nobody") {
			t.Errorf("show, after that: %s", shown)
		}
	})
}

// TestBrokenPipe checks that commands whose reader goes away end quietly.
func TestBrokenPipe(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		e.acquire(t, key, "")
		for _, args := range [][]string{{"ls"}, {"ls", "-o", "json"}, {"show", key}, {"show", key, "-o", "json"}, {"version"}, {"completion", "bash"}} {
			w := unread(t)
			p := launchTo(t, w, e.direct, args...)
			_ = w.Close()
			p.exits(141, "")
		}
	})
}

// TestTableCreate checks that table create creates a table, or accepts a suitable one.
func TestTableCreate(t *testing.T) {
	begin(t)
	e := newDynamoDB(t)
	create := func(args ...string) *tool { return e.run(t, append([]string{"table", "create"}, args...)...) }
	create().exits(0)
	fresh := "--table=" + strings.ReplaceAll(newKey(t), ".", "-")
	for range 2 {
		p := create(fresh, "-o", "json")
		p.exits(0).prints(`{"table":"` + strings.TrimPrefix(fresh, "--table=") + `","ready":true}` + "\n")
	}
	e.run(t, "run", fresh, "-k", "a", "--lease", calm, "true").exits(0)
	p := create(fresh, "--partition-key", "other:N")
	p.exits(69, `not "other"`)
	p = create("--engine", "zookeeper")
	p.exits(64)
}
