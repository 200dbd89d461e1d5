package mongolock_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// A script is a server whose answers a test writes.
type script struct {
	addr   string
	answer func(command string, request bson.Raw) bson.D // nil: the answer of a healthy server without documents; empty: none, the connection ends

	mu   sync.Mutex
	sent []sent
}

// sent is a command, except those of the driver itself, with the first document or update that goes with it.
type sent struct{ command, doc bson.Raw }

// serve starts a script.
func serve(t *testing.T, answer func(command string, request bson.Raw) bson.D) *script {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{addr: l.Addr().String(), answer: answer}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				s.converse(conn)
			})
		}
	})
	t.Cleanup(func() { l.Close() }) // the clients close the connections
	return s
}

// connect returns a collection of a client of the server.
func connect(t *testing.T, addr string, set ...*options.ClientOptions) *mongo.Collection {
	t.Helper()
	all := append([]*options.ClientOptions{options.Client().ApplyURI("mongodb://" + addr + "/?directConnection=true")}, set...)
	c, err := mongo.Connect(all...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Disconnect(t.Context()) })
	return c.Database("db").Collection("locks")
}

const (
	opReply = 1
	opQuery = 2004
	opMsg   = 2013
)

func (s *script) converse(conn net.Conn) {
	for {
		head := make([]byte, 16)
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		body := make([]byte, binary.LittleEndian.Uint32(head)-16)
		if _, err := io.ReadFull(conn, body); err != nil {
			return
		}
		var request, first bson.Raw
		code := binary.LittleEndian.Uint32(head[12:])
		if code == opMsg { // flags, kind of the section
			length := binary.LittleEndian.Uint32(body[5:])
			request = bson.Raw(body[5 : 5+length])
			if rest := body[5+length:]; len(rest) > 0 { // kind of the section, its length, its name
				_, rest, _ = bytes.Cut(rest[5:], []byte{0})
				first = bson.Raw(rest[:binary.LittleEndian.Uint32(rest)])
			}
		} else { // flags, "admin.$cmd", skip, limit
			request = bson.Raw(body[4+len("admin.$cmd")+1+8:])
		}
		out := s.reply(sent{request, first})
		switch {
		case out == nil:
			continue
		case len(out) == 0:
			return
		}
		doc, err := bson.Marshal(out)
		if err != nil {
			panic(err)
		}
		prefix, reply := make([]byte, 5), uint32(opMsg)
		if code == opQuery { // flags, cursor, from, count
			prefix, reply = make([]byte, 20), opReply
			prefix[16] = 1
		}
		message := binary.LittleEndian.AppendUint32(nil, uint32(16+len(prefix)+len(doc)))
		message = append(append(message, 0, 0, 0, 0), head[4:8]...)
		message = append(append(binary.LittleEndian.AppendUint32(message, reply), prefix...), doc...)
		if _, err := conn.Write(message); err != nil {
			return
		}
	}
}

// reply answers a command; nil: there is no answer.
func (s *script) reply(request sent) bson.D {
	elements, _ := request.command.Elements()
	command := elements[0].Key()
	switch command {
	case "hello", "isMaster", "ismaster", "endSessions", "saslStart", "createIndexes":
	default:
		s.mu.Lock()
		s.sent = append(s.sent, request)
		s.mu.Unlock()
	}
	if s.answer != nil {
		if out := s.answer(command, request.command); out != nil {
			return out
		}
	}
	switch command {
	case "hello", "isMaster", "ismaster":
		return hello()
	case "find":
		return found()
	}
	return bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 1}}
}

// hello is the answer of the primary of a replica set, with changes.
func hello(changes ...bson.E) bson.D {
	out := bson.D{
		{Key: "isWritablePrimary", Value: true},
		{Key: "ismaster", Value: true},
		{Key: "setName", Value: "rs0"},
		{Key: "localTime", Value: time.Now()},
		{Key: "minWireVersion", Value: 0},
		{Key: "maxWireVersion", Value: 21},
		{Key: "maxBsonObjectSize", Value: 16 << 20},
		{Key: "maxMessageSizeBytes", Value: 48000000},
		{Key: "maxWriteBatchSize", Value: 1000},
		{Key: "logicalSessionTimeoutMinutes", Value: 30},
		{Key: "ok", Value: 1},
	}
	for _, change := range changes {
		for i := range out {
			if out[i].Key == change.Key {
				out[i].Value = change.Value
			}
		}
	}
	return out
}

// found is the answer to find.
func found(docs ...any) bson.D {
	batch := append(bson.A{}, docs...)
	return bson.D{{Key: "cursor", Value: bson.D{
		{Key: "id", Value: int64(0)}, {Key: "ns", Value: "db.locks"}, {Key: "firstBatch", Value: batch},
	}}, {Key: "ok", Value: 1}}
}

// failure is the answer to a command that fails.
func failure(code int, name string) bson.D {
	return bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: code}, {Key: "codeName", Value: name}, {Key: "errmsg", Value: name + " it is"}}
}
