package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/mongoserver"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
	"github.com/holdfast-go/holdfast/locktest"
	"github.com/holdfast-go/holdfast/mongolock"
)

// mongoDatabase has a collection for each run.
const mongoDatabase = "holdfast-chaos"

// openMongo opens a client of MongoDB, in a client process.
func openMongo(ctx context.Context, config clientConfig) (locker, error) {
	db, err := mongo.Connect(options.Client().ApplyURI(config.Login.Endpoint).SetDirect(true))
	if err != nil {
		return locker{}, err
	}
	client, err := mongolock.New(ctx, db.Database(mongoDatabase).Collection(config.Login.Table), &mongolock.Options{
		Lease: config.Login.Lease, Poll: dynamoPoll, Owner: config.Owner, Standalone: true,
	})
	if err != nil {
		return locker{}, err
	}
	return locker{Client: client.Client, breakNow: client.BreakNow}, nil
}

// mongoStage is a server of MongoDB, a new collection, and a wire to the server for each slot.
type mongoStage struct {
	dir    string
	target *mongoserver.Target
	client *mongo.Client // the stage's own, which only faults of the server affect
	locks  *mongo.Collection
	wires  []*proxyWire
}

func startMongo(ctx context.Context, c casting) (stage, error) {
	target, err := mongoserver.Open(ctx)
	if err != nil {
		return nil, err
	}
	s := &mongoStage{dir: c.Dir, target: target}
	s.client, err = mongo.Connect(options.Client().ApplyURI(target.URI).SetDirect(true))
	if err == nil {
		s.locks = s.client.Database(mongoDatabase).Collection("locks-" + bson.NewObjectID().Hex())
	}
	for range c.Slots {
		if err == nil {
			w := &proxyWire{}
			w.apply = w.set
			w.proxy, err = faultproxy.StartMongoDB(target.Addr, dynamoLease/2, slow)
			s.wires = append(s.wires, w)
		}
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *mongoStage) deck() []nemesis.Kind {
	deck := []nemesis.Kind{
		nemesis.LostReply, nemesis.LostRequest, nemesis.LateRequest,
		nemesis.Cut, nemesis.BlackHole, nemesis.OneWayIn, nemesis.OneWayOut, nemesis.HalfOpen, nemesis.Stall,
		nemesis.ClientPaused, nemesis.ClientKilled, nemesis.ClientClosed, nemesis.BreakHolder, nemesis.ClockJump,
	}
	if s.target.Process() != nil {
		deck = append(deck, nemesis.ServerPaused)
	}
	return deck
}

func (s *mongoStage) servers() int { return 1 }

func (s *mongoStage) login(slot int) login { return s.loginBy(s.wires[slot].proxy.Addr()) }

func (s *mongoStage) direct() login { return s.loginBy(s.target.Addr) }

func (s *mongoStage) loginBy(addr string) login {
	endpoint := strings.Replace(s.target.URI, s.target.Addr, addr, 1)
	return login{Engine: "mongodb", Endpoint: endpoint, Table: s.locks.Name(), Lease: dynamoLease}
}

func (s *mongoStage) strike(_ context.Context, f nemesis.Fault) (string, func(context.Context) error, error) {
	if f.Kind == nemesis.ServerPaused {
		server := s.target.Process()
		return "server", func(context.Context) error { return server.Resume() }, server.Pause()
	}
	target, proxy := fmt.Sprintf("client %d", f.Client), s.wires[f.Client].proxy
	if fate, ok := mongoFates[f.Kind]; ok {
		var sent atomic.Uint32
		proxy.Lose(func() locktest.Fate {
			if sent.Add(1) > 1+f.Pick%3 {
				return locktest.Arrives
			}
			return fate
		})
		return target, func(context.Context) error { proxy.Lose(nil); return nil }, nil
	}
	slot := &zooKeeperSlot{n: f.Client, wires: []zooKeeperWire{s.wires[f.Client]}}
	return slot.strike(f)
}

// mongoFates are the fates of the next requests.
var mongoFates = map[nemesis.Kind]locktest.Fate{
	nemesis.LostReply: locktest.LostReply, nemesis.LostRequest: locktest.LostRequest, nemesis.LateRequest: locktest.LateRequest,
}

func (s *mongoStage) heal(ctx context.Context) error {
	var errs []error
	if server := s.target.Process(); server != nil {
		errs = append(errs, server.Resume())
	}
	for _, w := range s.wires {
		errs = append(errs, w.heal())
	}
	ctx, cancel := context.WithTimeout(ctx, healPatience)
	defer cancel()
	return errors.Join(append(errs, s.client.Ping(ctx, nil))...)
}

// stall is zero: a document is read where it is written.
func (s *mongoStage) stall() time.Duration { return 0 }

// residue reads all documents. A released key keeps its document, to preserve its token.
func (s *mongoStage) residue(ctx context.Context, keys []string) (left []string, err error) {
	cursor, err := s.locks.Find(ctx, bson.D{})
	if err != nil {
		return nil, err
	}
	var docs []struct {
		Key     string `bson:"_id"`
		Holders []struct {
			Owner string
			Token int64
		}
	}
	if err := cursor.All(ctx, &docs); err != nil {
		return nil, err
	}
	missing := slices.Clone(keys)
	for _, doc := range docs {
		missing = slices.DeleteFunc(missing, func(key string) bool { return key == doc.Key })
		for _, h := range doc.Holders {
			left = append(left, fmt.Sprintf("%s: held by %s with token %d", doc.Key, h.Owner, h.Token))
		}
	}
	for _, key := range missing {
		left = append(left, key+": no document, so the next token need not be greater")
	}
	return left, nil
}

// close saves the server's log for failed runs.
func (s *mongoStage) close() {
	for _, w := range s.wires {
		if w.proxy != nil {
			_ = w.proxy.Close()
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), healPatience)
	defer cancel()
	var errs []error
	if server := s.target.Process(); server != nil {
		_ = server.Resume() // it may have ended on its own
	}
	if s.locks != nil {
		errs = append(errs, s.locks.Drop(ctx), s.client.Disconnect(ctx))
	}
	if tail := s.target.LogTail(); s.dir != "" && tail != "" {
		errs = append(errs, os.WriteFile(filepath.Join(s.dir, "mongodb.log"), []byte(tail), 0o644))
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	s.target.Close()
}
