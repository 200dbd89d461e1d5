package doctor

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

// DynamoDB says what to examine.
type DynamoDB struct {
	Client  *dynamodb.Client
	Options dynamolock.Options
	Prefix  string        // of the keys to look at
	Timeout time.Duration // for each check
}

// dynamoChecks in the order in which they are made: each may rely on what those
// before have found.
var dynamoChecks = []check[*table]{
	{id: "endpoint", look: (*table).endpoint},
	{id: "credentials", look: (*table).credentials},
	{id: "table", look: (*table).describe},
	{id: "schema", look: (*table).schema},
	{id: "replicas", look: (*table).replicas},
	{id: "ttl", look: (*table).timeToLive},
	{id: "permissions", look: (*table).permissions},
	{id: "latency", look: (*table).latency},
	{id: "lock", look: (*table).trial},
	{id: "reason", look: (*table).reason},
	{id: "foreign", look: (*table).foreign},
	{id: "locks", look: (*table).locks},
	{id: "clock", look: (*table).clock},
}

// Examine makes the checks and reports each finding as it comes. It fails if ctx
// ends, if report does, and with holdfast.ErrInvalid for what makes no sense.
func (d DynamoDB) Examine(ctx context.Context, report func(Finding) error) error {
	t := &table{DynamoDB: d, denied: make(map[string]bool)}
	t.ddb = dynamodb.New(d.Client.Options(), func(o *dynamodb.Options) {
		t.wire = &wire{next: o.HTTPClient}
		o.HTTPClient = t.wire
	})
	t.key = newProbeKey(d.Options.Keys, d.Prefix)
	if err := t.valid(); err != nil {
		return err
	}
	defer t.close()
	return examine(ctx, examination{timeout: d.Timeout, report: report, refused: refusedByDynamoDB}, t, dynamoChecks)
}

// valid refuses settings that make no sense, before anything is sent.
func (t *table) valid() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := dynamolock.New(ctx, t.ddb, &t.Options)
	if errors.Is(err, holdfast.ErrInvalid) {
		return err
	}
	return nil
}

// A table is what is examined.
type table struct {
	DynamoDB
	ddb         *dynamodb.Client // by way of wire
	wire        *wire
	description *types.TableDescription
	client      *dynamolock.Client
	key         probeKey
	used        bool // there may be an item of the key
	present     bool // there is one

	denied map[string]bool // calls that are not permitted
}

// close ends the client, which waits until what was given up is undone, and
// removes the probe's item, if there may be one.
func (t *table) close() {
	ctx, cancel := cleaning(t.Timeout)
	defer cancel()
	if t.client != nil {
		_ = t.client.Close(ctx)
	}
	if t.used {
		_, _ = t.ddb.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &t.Options.Table, Key: t.key.item})
	}
}

// deniedCodes are the answers to those who may not make a call.
var deniedCodes = []string{"AccessDeniedException", "AccessDenied", "NotAuthorized"}

// deniedCall reports whether a call is not permitted to these credentials.
func deniedCall(err error) bool {
	api, is := answer(err)
	return is && slices.Contains(deniedCodes, api.ErrorCode())
}

// refusedByDynamoDB reports whether an error is an answer.
func refusedByDynamoDB(err error) bool {
	_, is := answer(err)
	return is || errors.Is(err, holdfast.ErrDenied)
}

func answer(err error) (smithy.APIError, bool) {
	var api smithy.APIError
	is := errors.As(err, &api)
	return api, is
}

// once switches off the SDK's retries, where it is the single request that matters.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// A probeKey is a key that nobody else has, below the prefix that is examined,
// as policies may go by that.
type probeKey struct {
	key  string // as clients name it
	item map[string]types.AttributeValue
}

func newProbeKey(keys dynamolock.Keys, prefix string) probeKey {
	if keys.Partition.Name == "" {
		keys.Partition.Name = "id"
	}
	if keys.Sort.Name == "" {
		text := probeText(keys.Partition, prefix)
		return probeKey{text, map[string]types.AttributeValue{keys.Partition.Name: keyValue(keys.Partition, text)}}
	}
	partition, sort, found := strings.Cut(prefix, "/")
	if !found || partition == "" {
		partition, sort = probeText(keys.Partition, partition), ""
	}
	sort = probeText(keys.Sort, sort)
	return probeKey{partition + "/" + sort, map[string]types.AttributeValue{
		keys.Partition.Name: keyValue(keys.Partition, partition),
		keys.Sort.Name:      keyValue(keys.Sort, sort),
	}}
}

// probeText is a random text that begins with a prefix, or a random number.
func probeText(attr dynamolock.KeyAttr, prefix string) string {
	name := probeName()
	if attr.Type != types.ScalarAttributeTypeN {
		return prefix + name
	}
	digits := strings.Map(func(r rune) rune { return '0' + r%10 }, strings.TrimPrefix(name, probePrefix))
	return "1" + digits // the first of a number is no zero
}

func keyValue(attr dynamolock.KeyAttr, text string) types.AttributeValue {
	switch attr.Type {
	case types.ScalarAttributeTypeN:
		return &types.AttributeValueMemberN{Value: text}
	case types.ScalarAttributeTypeB:
		return &types.AttributeValueMemberB{Value: []byte(text)}
	}
	return &types.AttributeValueMemberS{Value: text}
}

// A wire is an HTTP client that notes whom it talks to, and what the answers say
// of the time.
type wire struct {
	next dynamodb.HTTPClient

	mu    sync.Mutex
	host  string
	last  error // of the last request that has failed for another reason than its ctx
	clock clock
}

// Do implements the SDK's interface.
func (w *wire) Do(req *http.Request) (*http.Response, error) {
	sent := time.Now()
	resp, err := w.next.Do(req)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.host = req.URL.Scheme + "://" + req.URL.Host
	if err == nil {
		if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			w.clock.note(sent, time.Now(), date.Add(time.Second/2))
		}
	} else if req.Context().Err() == nil {
		w.last = err
	}
	return resp, err
}

// trouble returns what kept the last request that failed from its answer.
func (w *wire) trouble() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

func (w *wire) seen() (host string, c clock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.host, w.clock
}
