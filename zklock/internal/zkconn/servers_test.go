package zkconn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/network"
)

// names are the answers of a resolver; a host that is missing does not exist.
type names map[string][]string

func (n names) lookUp(ctx context.Context, host string) ([]string, error) {
	switch all, ok := n[host]; {
	case ok && all == nil: // it hangs
		<-ctx.Done()
		return nil, ctx.Err()
	case ok:
		return slices.Clone(all), nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// namesLink is a link that resolves by n.
func namesLink(t *testing.T, n names, hosts ...string) *Link {
	l, _ := testLink(t, Config{})
	l.dialling = network.WithNames(context.Background(), nil, n.lookUp)
	for _, host := range hosts {
		l.names = append(l.names, net.JoinHostPort(host, "2181"))
	}
	return l
}

// turn dials and fails, so many times, and returns the servers.
func turn(l *Link, times int) string {
	var dialled []string
	for range times {
		s := l.next()
		host, _, _ := net.SplitHostPort(cmp.Or(s.at, s.name))
		dialled = append(dialled, host)
		l.failures++
	}
	return strings.Join(dialled, " ")
}

func TestNext_Names_EachAddressHasItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := names{"a": {"10.0.0.1", "10.0.0.2", "fe80::1%eth0"}, "b": {"10.0.0.9"}}
		l := namesLink(t, n, "a", "b", "missing", "hangs")
		expect := func(when, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %s, want %s", when, got, want)
			}
		}
		expect("two rounds", turn(l, 12), "10.0.0.1 10.0.0.2 fe80::1%eth0 10.0.0.9 missing hangs missing hangs 10.0.0.1 10.0.0.2 fe80::1%eth0 10.0.0.9")
		l.names = l.names[:2]
		n["a"] = []string{"10.0.0.2", "10.0.0.3", "10.0.0.1"} // another order, one is new, one has gone
		expect("new addresses", turn(l, 4), "10.0.0.3 10.0.0.1 10.0.0.2 10.0.0.9")
		delete(n, "a")
		expect("after a failure of the resolver", turn(l, 4), "10.0.0.3 10.0.0.1 10.0.0.2 10.0.0.9")
		n["a"] = nil
		began := time.Now()
		expect("while it hangs", turn(l, 4), "10.0.0.3 10.0.0.1 10.0.0.2 10.0.0.9")
		if took := time.Since(began); took > standard(standardSession).FirstReply {
			t.Errorf("the known addresses had their turn after %v", took)
		}
		n["a"] = []string{"10.0.0.1", "10.0.0.2"}
		expect("half a round", turn(l, 2), "10.0.0.1 10.0.0.2")
		n["a"] = []string{"10.0.0.2", "10.0.0.5"}
		l.failures = 0
		expect("after a connection that has served", turn(l, 3), "10.0.0.5 10.0.0.9 10.0.0.2")
	})
}

// TestConnect_OneName_CausePerAddress: a name that stands for several strangers, and one that stands for nothing.
func TestConnect_OneName_CausePerAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := map[string]string{"10.0.0.1:2181": "HTTP/1.1 400 Bad Request\r\n\r\n", "10.0.0.2:2181": "220 mail.example ESMTP\r\n"}
		ctx := network.WithNames(t.Context(), func(_ context.Context, _, address string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				defer theirs.Close()
				_, _ = theirs.Read(make([]byte, 1<<10))
				_, _ = io.WriteString(theirs, answers[address])
			}()
			return ours, nil
		}, names{"a": {"10.0.0.1", "10.0.0.2"}}.lookUp)
		err := dial(ctx, t, []string{"a"}, nil)
		for _, want := range []string{"a:2181 (10.0.0.1:2181): it does not speak", "a:2181 (10.0.0.2:2181): it does not speak"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		err = dial(ctx, t, []string{"a", "missing"}, nil)
		if want := "lookup missing: no such host"; !strings.Contains(fmt.Sprint(err), want) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want %q, at the end of ctx", err, want)
		}
	})
}
