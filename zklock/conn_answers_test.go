package zklock

import (
	"context"
	"net"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/network"
)

// TestAnswersToAnEnd tests which answers count as the end of a session that was left: only what a server says of that very session.
func TestAnswersToAnEnd(t *testing.T) {
	const id = 7
	greeting := frame(int32(0), int64(1), int32(6000), int64(id), string(make([]byte, 16)))
	for name, c := range map[string]struct {
		answers [][]byte // to one request each; the connection ends behind them
		over    bool
	}{
		"it is over":               {[][]byte{connectResponse(0, 0)}, true},
		"it ends":                  {[][]byte{connectResponse(6000, id), reply(1, 5, 0)}, true},
		"it has ended meanwhile":   {[][]byte{connectResponse(6000, id), reply(1, 5, codeSessionExpired)}, true},
		"an event, and the end":    {[][]byte{connectResponse(6000, id), append(reply(xidEvent, -1, 0), reply(1, 5, 0)...)}, true},
		"no greeting":              {nil, false},
		"an empty greeting":        {[][]byte{frame(), reply(1, 5, 0)}, false},
		"a short greeting":         {[][]byte{frame(int32(0), int32(0)), reply(1, 5, 0)}, false},
		"another session's":        {[][]byte{connectResponse(6000, id+1), reply(1, 5, 0)}, false},
		"no reply":                 {[][]byte{connectResponse(6000, id)}, false},
		"an event alone":           {[][]byte{connectResponse(6000, id), reply(xidEvent, -1, 0)}, false},
		"a reply to other":         {[][]byte{connectResponse(6000, id), reply(77, 5, 0)}, false},
		"a reply without a header": {[][]byte{connectResponse(6000, id), frame(int32(1))}, false},
		"a refusal":                {[][]byte{connectResponse(6000, id), reply(1, 5, -4)}, false},
		"another protocol":         {[][]byte{[]byte("HTTP/1.1 400 Bad Request\r\n\r\n")}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, _ := testLink(t, Options{})
			l.times = l.opts.times(DefaultSessionTimeout)
			one := &left{greeting: greeting}
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
