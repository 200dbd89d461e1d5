package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/mongolock"
)

// MongoDB says what to examine.
type MongoDB struct {
	Collection *mongo.Collection
	Options    mongolock.Options
	Prefix     string        // of the keys to look at
	Timeout    time.Duration // for each check
}

// mongoChecks are the checks in order: each may rely on the findings of earlier ones.
var mongoChecks = []check[*documents]{
	{"server", (*documents).server},
	{"clock", (*documents).clock},
	{"ttl", (*documents).timeToLive},
	{"latency", (*documents).latency},
	{"lock", (*documents).trial},
	{"locks", (*documents).locks},
}

// Examine runs the checks and reports each finding at once. It fails if ctx ends, if report fails, or with holdfast.ErrInvalid if the
// settings make no sense.
func (m MongoDB) Examine(ctx context.Context, report func(Finding) error) error {
	if err := valid(func(ctx context.Context) error { _, err := mongolock.New(ctx, m.Collection, &m.Options); return err }); err != nil {
		return err
	}
	d := &documents{MongoDB: m, key: m.Prefix + probeName()}
	defer d.close()
	return examine(ctx, examination{timeout: m.Timeout, report: report, refused: refusedByMongoDB}, d, mongoChecks)
}

// documents are what is examined.
type documents struct {
	MongoDB
	locker *mongolock.Client
	key    string // of the probe
	hello  struct {
		Set  string    `bson:"setName"`
		Time time.Time `bson:"localTime"`
	}
}

// close ends the client, and removes the probe's document.
func (d *documents) close() {
	ctx, cancel := cleaning(d.Timeout)
	defer cancel()
	if d.locker != nil {
		_ = d.locker.Close(ctx)
		_, _ = d.Collection.DeleteOne(ctx, bson.D{{Key: "_id", Value: d.key}})
	}
}

// refusedByMongoDB reports whether MongoDB has answered with an error.
func refusedByMongoDB(err error) bool {
	return errors.As(err, new(mongo.ServerError)) || errors.Is(err, holdfast.ErrDenied)
}

// server connects to the primary as a program would.
func (d *documents) server(ctx context.Context) ([]Finding, error) {
	var err error
	if d.locker, err = mongolock.New(ctx, d.Collection, &d.Options); err != nil {
		cure := "see to the connection string, the network and the replica set (rs.status()); or give a longer --timeout"
		switch {
		case errors.Is(err, holdfast.ErrDenied):
			cure = "see to user, password and authSource; allow find, insert, update and createIndex on the collection"
		case errors.Is(err, mongolock.ErrServer):
			cure = "use a replica set; for development, give --standalone"
		}
		return last(problem(cure, "%v", err))
	}
	client := d.Collection.Database().Client()
	if err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&d.hello); err != nil {
		return nil, fmt.Errorf("hello: %w", err)
	}
	var build struct{ Version string }
	_ = client.Database("admin").RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Decode(&build)
	version := "MongoDB " + cmp.Or(build.Version, "of an unknown version")
	if d.hello.Set == "" {
		return only(ok("%s; no replica set", version))
	}
	return only(ok("%s, replica set %s", version, d.hello.Set))
}

// clock compares the server's clock with this machine's, by which clients say when the TTL index may delete a document.
func (d *documents) clock(context.Context) ([]Finding, error) {
	const farApart = time.Hour
	behind := time.Since(d.hello.Time).Round(time.Second).Abs()
	if behind >= farApart {
		return only(problem("set the clocks (NTP)", "the server's clock differs from this machine's by %v: the TTL index may delete too soon", behind))
	}
	return only(ok("the server's clock is within %v of this machine's; locks do not depend on that", max(behind, time.Second)))
}

// timeToLive looks for the TTL index.
func (d *documents) timeToLive(ctx context.Context) ([]Finding, error) {
	specifications, err := d.Collection.Indexes().ListSpecifications(ctx)
	if err != nil {
		return only(skipped("allow listIndexes on the collection", "the indexes cannot be listed: %v", err))
	}
	for _, index := range specifications {
		switch _, err := index.KeysDocument.LookupErr("expires"); {
		case err != nil:
		case index.ExpireAfterSeconds != nil && *index.ExpireAfterSeconds == 0:
			return only(ok("an index deletes the documents of unused keys"))
		default:
			return only(problem("make it one with expireAfterSeconds: 0", "the index %q on expires deletes at another time, or never", index.Name))
		}
	}
	return only(warning("create an index on expires with expireAfterSeconds: 0; clients do so if they may", "no index deletes the documents of unused keys"))
}

// latency measures writes that are like heartbeats.
func (d *documents) latency(ctx context.Context) ([]Finding, error) {
	lock, err := d.locker.TryAcquire(ctx, d.key)
	if err != nil {
		return nil, err
	}
	defer func() {
		ctx, cancel := cleaning(d.Timeout)
		defer cancel()
		_ = lock.Release(ctx)
	}()
	took, err := measure(func() error { return lock.SetData(ctx, []byte("probe")) })
	if err != nil {
		return nil, err
	}
	lease := cmp.Or(d.Options.Lease, mongolock.DefaultLease)
	return only(judgeWrites(took, lease/4, min(lease/6, 5*time.Second)))
}

// trial takes a lock as a program would.
func (d *documents) trial(ctx context.Context) ([]Finding, error) {
	return tryLock(ctx, d.locker.Client, d.key, d.Timeout)
}

// locks counts the held locks, and reports those of holders that seem to be dead, and corrupt documents.
func (d *documents) locks(ctx context.Context) ([]Finding, error) {
	held := 0
	var findings []Finding
	for info, err := range d.locker.List(ctx, d.Prefix) {
		switch {
		case errors.Is(err, mongolock.ErrRecord):
			findings = append(findings, problem("mend or delete the document while no program uses the key", "a key cannot be had: %v", err))
			continue
		case err != nil:
			return nil, err
		}
		held++
		for grant := range info.Each() {
			if grant.SeemsDead(time.Now()) && len(findings) < maxLeft {
				findings = append(findings, warning("the next client that wants it takes it over after a lease",
					"%q is held by %q, which seems dead: it was last heard of at %s by its own clock, and its lease is %v",
					grant.Key, grant.Owner, grant.LastHeard.UTC().Format(time.RFC3339), grant.Lease))
			}
		}
	}
	if len(findings) == 0 {
		return only(ok("%s held, each of which expires if its holder dies", count(held, "lock")))
	}
	return findings, nil
}
