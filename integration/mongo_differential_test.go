package integration_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/holdfast-go/holdfast/integration/internal/mongoserver"
	"github.com/holdfast-go/holdfast/internal/mongostore"
	"github.com/holdfast-go/holdfast/internal/recordlock"
	"github.com/holdfast-go/holdfast/internal/recordlock/memstore"
	"github.com/holdfast-go/holdfast/mongolock"
)

// TestMongoDifferential is TestDynamoDifferential for mongolock's store. A server that does not compare and write atomically fails it.
func TestMongoDifferential(t *testing.T) {
	start(t)
	locks := mongoCollection(t, mongoserver.Find(t))
	client, err := mongolock.New(t.Context(), locks, &mongolock.Options{Standalone: true})
	must(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	d := &differential{
		Rand: rand.New(rand.NewPCG(seeded(t), 1)), key: "k", expires: true, memory: &memstore.Store{Revisions: true},
		table: recordlock.ByRevision(mongostore.Of(client)),
		remove: func(t *testing.T) {
			_, err := locks.DeleteOne(limited(t), bson.D{{Key: "_id", Value: "k"}})
			must(t, err)
		},
	}
	d.run(t, setting(t, "HOLDFAST_OPERATIONS", 1500, strconv.Atoi))
}
