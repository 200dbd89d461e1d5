package zkconn

import (
	"context"
	"net"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/zklock/internal/zktest"
)

// TestAnswersToAnEnd tests which answers count as the end of a session that was left: only what a server says of that very session.
func TestAnswersToAnEnd(t *testing.T) {
	const id = 7
	greeting := zktest.Frame(int32(0), int64(1), int32(6000), int64(id), string(make([]byte, 16)))
	for name, c := range map[string]struct {
		answers [][]byte // to one request each; the connection ends behind them
		over    bool
	}{
		"it is over":               {[][]byte{zktest.ConnectResponse(0, 0)}, true},
		"it ends":                  {[][]byte{zktest.ConnectResponse(6000, id), zktest.Reply(1, 5, 0)}, true},
		"it has ended meanwhile":   {[][]byte{zktest.ConnectResponse(6000, id), zktest.Reply(1, 5, codeSessionExpired)}, true},
		"an event, and the end":    {[][]byte{zktest.ConnectResponse(6000, id), append(zktest.Reply(xidEvent, -1, 0), zktest.Reply(1, 5, 0)...)}, true},
		"no greeting":              {nil, false},
		"an empty greeting":        {[][]byte{zktest.Frame(), zktest.Reply(1, 5, 0)}, false},
		"a short greeting":         {[][]byte{zktest.Frame(int32(0), int32(0)), zktest.Reply(1, 5, 0)}, false},
		"another session's":        {[][]byte{zktest.ConnectResponse(6000, id+1), zktest.Reply(1, 5, 0)}, false},
		"no reply":                 {[][]byte{zktest.ConnectResponse(6000, id)}, false},
		"an event alone":           {[][]byte{zktest.ConnectResponse(6000, id), zktest.Reply(xidEvent, -1, 0)}, false},
		"a reply to other":         {[][]byte{zktest.ConnectResponse(6000, id), zktest.Reply(77, 5, 0)}, false},
		"a reply without a header": {[][]byte{zktest.ConnectResponse(6000, id), zktest.Frame(int32(1))}, false},
		"a refusal":                {[][]byte{zktest.ConnectResponse(6000, id), zktest.Reply(1, 5, -4)}, false},
		"another protocol":         {[][]byte{[]byte("HTTP/1.1 400 Bad Request\r\n\r\n")}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, _ := testLink(t, Config{})
			l.times = l.config.Times(standardSession)
			one := &leftSession{greeting: greeting}
			ctx := network.With(t.Context(), func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go func() {
					defer theirs.Close()
					request := make([]byte, 1<<10)
					for _, answer := range c.answers {
						if _, err := theirs.Read(request); err != nil {
							return
						}
						_, _ = theirs.Write(answer)
					}
				}()
				return ours, nil
			})
			if err := l.endAt(ctx, "server:2181", one); (err == nil) != c.over || one.over != c.over {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
