package zkconn

import (
	"testing"
	"time"
)

// clientRequest is a request for one znode; a transaction begins with its creation.
func clientRequest(xid, op int32, path string) []byte {
	if op == opMulti {
		return frame(xid, op, int32(opCreate), []byte{0}, int32(-1), path, "data")
	}
	return frame(xid, op, path, "data", int32(1), int32(31))
}

// TestRefusedTransactionRenewsNothing tests hazard Z5: a server that refuses a transaction, because the session is being
// ended, for example, says so in the members, with 0 in the header of the reply.
func TestRefusedTransactionRenewsNothing(t *testing.T) {
	for _, test := range []struct {
		name   string
		member int32
		renews bool
	}{{"carried out", opDelete, true}, {"refused", -1, false}} {
		t.Run(test.name, func(t *testing.T) {
			l, fake := testLink(t, Config{})
			w := newestWire(l, &scripted{}, time.Second)
			w.Write(connectRequest())
			fake.Advance(100 * time.Millisecond)
			feed(w, connectResponse(4000, 7))
			before := l.Session().Lease.Deadline()
			exchange := func(xid, op int32, body ...any) {
				fake.Advance(10 * time.Millisecond)
				w.noteRequest(clientRequest(xid, op, "/x"))
				fake.Advance(10 * time.Millisecond)
				feed(w, reply(xid, 1, 0, body...))
			}
			created := &creation{sent: func() {}}
			l.creations["/x"] = created
			exchange(1, 4)
			fake.Advance(2 * time.Second)
			exchange(2, opSync)
			exchange(3, opMulti, test.member, []byte{0}, int32(-112), int32(-112), int32(-1), []byte{1}, int32(-1))
			if after := l.Session().Lease.Deadline(); after.After(before) != test.renews {
				t.Errorf("the lease is renewed by %v", after.Sub(before))
			}
			if created := created.czxid != 0; created != test.renews {
				t.Errorf("created: %v", created)
			}
		})
	}
}
