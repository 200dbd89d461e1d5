package dynamoserver

import (
	"net"
	"net/url"
	"os"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// A client that ends in the middle of a request must not stop the server that the others share.
func TestDynaliteSurvivesAHangUp(t *testing.T) {
	t.Parallel()
	target := Find(t)
	if target.Source() != Dynalite {
		t.Logf("the server is not dynalite but %s", target.Source())
		return
	}
	u, err := url.Parse(target.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	const head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: 10\r\n"
	if _, err := conn.Write([]byte(head + "Expect: 100-continue\r\n\r\n{")); err != nil {
		t.Fatal(err)
	}
	// The answer shows that the server has seen the request.
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	for range 20 {
		if err := serves(t.Context(), target.Client(noRetry)); err != nil {
			t.Fatal(err)
		}
	}
}
