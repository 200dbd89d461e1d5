package zkconn

import (
	"bytes"
	"context"
	"net"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/zklock/internal/zktest"
)

// TestAnswersToAnEnd tests which answers count as the end of a session that was left: only what a server says of that very session,
// and that it is over only if another session can write before and after that.
func TestAnswersToAnEnd(t *testing.T) {
	const id = 7
	greeting := zktest.Frame(int32(0), int64(1), int32(6000), int64(id), string(make([]byte, 16)))
	const noNode, lost = -101, -112
	var (
		over     = [][]byte{zktest.ConnectResponse(0, 0)}
		expired  = [][]byte{zktest.ConnectResponse(6000, id), zktest.Reply(1, 5, codeSessionExpired)}
		resumed  = zktest.ConnectResponse(6000, id)
		began    = zktest.ConnectResponse(6000, id+1)
		ends     = [][]byte{resumed, zktest.Reply(1, 5, 0)}
		wrote    = [][]byte{began, zktest.Reply(1, 5, noNode), zktest.Reply(2, 5, 0)}
		oneReply = func(answers ...[]byte) [][][]byte { return [][][]byte{answers} }
	)
	for name, c := range map[string]struct {
		visits [][][]byte // by connection: answers to one request each; it ends behind them
		over   bool
	}{
		"it ends":                           {[][][]byte{ends}, true},
		"an event, and the end":             {oneReply(resumed, append(zktest.Reply(xidEvent, -1, 0), zktest.Reply(1, 5, 0)...)), true},
		"it is over, and another wrote":     {[][][]byte{over, wrote, over}, true},
		"it had ended, and another wrote":   {[][][]byte{expired, wrote, expired}, true},
		"it is over, and then it ends":      {[][][]byte{over, wrote, ends}, true},
		"it is over":                        {[][][]byte{over}, false},
		"it is over, it says again":         {[][][]byte{over, over}, false},
		"it is over, and nobody can write":  {[][][]byte{over, {began}, over}, false},
		"it is over, and no session lasts":  {[][][]byte{over, {began, zktest.Reply(1, 5, lost)}, over}, false},
		"it is over, and is not any longer": {[][][]byte{over, wrote, {resumed}}, false},
		"no greeting":                       {nil, false},
		"an empty greeting":                 {oneReply(zktest.Frame(), zktest.Reply(1, 5, 0)), false},
		"a short greeting":                  {oneReply(zktest.Frame(int32(0), int32(0)), zktest.Reply(1, 5, 0)), false},
		"another session's":                 {oneReply(began, zktest.Reply(1, 5, 0)), false},
		"no reply":                          {oneReply(resumed), false},
		"an event alone":                    {oneReply(resumed, zktest.Reply(xidEvent, -1, 0)), false},
		"a reply to other":                  {oneReply(resumed, zktest.Reply(77, 5, 0)), false},
		"a reply without a header":          {oneReply(resumed, zktest.Frame(int32(1))), false},
		"a refusal":                         {oneReply(resumed, zktest.Reply(1, 5, -4)), false},
		"another protocol":                  {oneReply([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, _ := testLink(t, Config{})
			l.times = l.config.Times(standardSession)
			one := &sessionToEnd{greeting: greeting}
			left := c.visits
			ctx := network.With(t.Context(), func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				var answers [][]byte
				if len(left) > 0 {
					answers, left = left[0], left[1:]
				}
				go func() {
					defer theirs.Close()
					request := make([]byte, 1<<10)
					for _, answer := range answers {
						if _, err := theirs.Read(request); err != nil {
							return
						}
						_, _ = theirs.Write(answer)
					}
				}()
				return ours, nil
			})
			if err := l.endAt(ctx, theServer, one); (err == nil) != c.over || one.over != c.over {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestCredentialsForStrangers: only a server that has given a session gets the credentials.
func TestCredentialsForStrangers(t *testing.T) {
	greeting := zktest.Frame(int32(0), int64(1), int32(6000), int64(7), string(make([]byte, 16)))
	synctest.Test(t, func(t *testing.T) {
		l, _ := testLink(t, Config{Auth: []Auth{{"digest", "user:secret"}}})
		l.times = l.config.Times(standardSession)
		var heard bytes.Buffer
		visits := 0
		ctx := network.With(t.Context(), func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			visits++
			go func() {
				defer theirs.Close()
				request := make([]byte, 1<<10)
				for {
					n, err := theirs.Read(request)
					if err != nil {
						return
					}
					heard.Write(request[:n])
					_, _ = theirs.Write(zktest.ConnectResponse(0, 0))
				}
			}()
			return ours, nil
		})
		if err := l.endAt(ctx, theServer, &sessionToEnd{greeting: greeting}); err == nil || visits != 2 {
			t.Errorf("%d visits: %v", visits, err)
		}
		if synctest.Wait(); bytes.Contains(heard.Bytes(), []byte("user:secret")) {
			t.Error("they have got the credentials")
		}
	})
}
