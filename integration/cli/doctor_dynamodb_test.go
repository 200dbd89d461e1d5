package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
)

func attrS(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func attrN(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// putItem writes an item into the table of settings.
func putItem(t *testing.T, env []string, item map[string]types.AttributeValue) {
	t.Helper()
	_, err := dynamoserver.Find(t).Client().PutItem(limited(t), &dynamodb.PutItemInput{
		TableName: aws.String(setting(env, "HOLDFAST_TABLE")), Item: item,
	})
	must(t, err)
}

// age has the item of a key look as if its holder had fallen silent long ago, with a lease of a second.
func age(t *testing.T, env []string, key string) {
	t.Helper()
	_, err := dynamoserver.Find(t).Client().UpdateItem(limited(t), &dynamodb.UpdateItemInput{
		TableName:                 aws.String(setting(env, "HOLDFAST_TABLE")),
		Key:                       map[string]types.AttributeValue{dynamoserver.DefaultKey: attrS(key)},
		UpdateExpression:          aws.String("SET leaseDurationMs = :lease, lockAcquiredTimeUnixMs = :acquired"),
		ConditionExpression:       aws.String("attribute_exists(guid)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":lease": attrN(1000), ":acquired": attrN(1)},
	})
	must(t, err)
}

// allItems reads the table of settings.
func allItems(t *testing.T, env []string) []map[string]types.AttributeValue {
	t.Helper()
	out, err := dynamoserver.Find(t).Client().Scan(limited(t), &dynamodb.ScanInput{
		TableName: aws.String(setting(env, "HOLDFAST_TABLE")), ConsistentRead: aws.Bool(true),
	})
	must(t, err)
	return out.Items
}

// broken returns the settings of a table behind a proxy, and the proxy.
func broken(t *testing.T) ([]string, *faulthttp.Proxy) {
	t.Helper()
	env := tableOfItsOwn(t)
	p, err := faulthttp.Listen(setting(env, "AWS_ENDPOINT_URL_DYNAMODB"))
	must(t, err)
	t.Cleanup(p.Close)
	return append(env, "AWS_ENDPOINT_URL_DYNAMODB="+p.URL()), p
}

// TestDoctorDenied checks that doctor reports forbidden calls, as problems only if locks need them.
func TestDoctorDenied(t *testing.T) {
	begin(t)
	env, proxy := broken(t)
	for _, test := range []struct {
		call, mode string
		want       finding
	}{
		{"DescribeTable", "fail-open", finding{"table", "problem", "dynamodb:DescribeTable on ", ""}},
		{"GetItem", "fail-open", finding{"permissions", "problem", "dynamodb:GetItem is denied", ""}},
		{"UpdateItem", "fail-open", finding{"permissions", "problem", "dynamodb:UpdateItem is denied", ""}},
		{"DeleteItem", "fail-open", finding{"permissions", "warning", "dynamodb:DeleteItem is denied", ""}},
		{"DeleteItem", "fail-closed", finding{"permissions", "problem", "dynamodb:DeleteItem is denied", ""}},
		{"Scan", "fail-open", finding{"permissions", "warning", "dynamodb:Scan is denied", ""}},
		{"TransactWriteItems", "fail-open", finding{"permissions", "warning", "dynamodb:ConditionCheckItem is denied", ""}},
		{"DescribeTimeToLive", "fail-open", finding{"ttl", "warning", "not told", ""}},
	} {
		proxy.Transport.SetRule(faulthttp.All(test.call, faulthttp.Denied()))
		all := examined(t, env, map[string]int{"problem": 1}[test.want.Status], "--mode", test.mode)
		finds(t, all, test.want.ID, test.want.Status, test.want.Found, "allow dynamodb:")
		well(t, all, test.want.ID)
		if skipped := map[string]string{"Scan": "foreign", "UpdateItem": "lock"}[test.call]; skipped != "" {
			finds(t, all, skipped, "skipped", "for want of permissions", "grant the permissions")
		}
		nothingLeft(t, env)
		if t.Failed() {
			t.Fatalf("with %s denied", test.call)
		}
	}
}

// TestDoctorQueryDenied tests doctor on a table with a sort key, the only kind that needs Query.
func TestDoctorQueryDenied(t *testing.T) {
	begin(t)
	target := dynamoserver.Find(t)
	env, proxy := broken(t)
	table := target.Table(t, dynamoserver.Key{Name: "p", Type: types.ScalarAttributeTypeN}, dynamoserver.Key{Name: "s", Type: types.ScalarAttributeTypeB})
	env = append(env, "HOLDFAST_TABLE="+table, "HOLDFAST_PARTITION_KEY=p:N", "HOLDFAST_SORT_KEY=s:B")
	well(t, examined(t, env, 0))
	well(t, examined(t, env, 0, "7/x"))
	proxy.Transport.SetRule(faulthttp.All("Query", faulthttp.Denied()))
	finds(t, examined(t, env, 0), "permissions", "warning", "dynamodb:Query is denied", "allow dynamodb:Query")
	nothingLeft(t, env)
}

// TestDoctorTable tests the findings about unsuitable tables, each with the command or setting that helps.
func TestDoctorTable(t *testing.T) {
	begin(t)
	env := tableOfItsOwn(t)
	finds(t, examined(t, env, 1, "--table", "no-such-table"), "table", "problem", "there is no table no-such-table", "holdfast table create --table no-such-table")
	finds(t, examined(t, env, 1, "--sort-key", "s"), "schema", "problem", `"s" is expected`, "--sort-key")
	finds(t, examined(t, env, 1, "--partition-key", "other:N"), "schema", "problem", `is "id", not "other"`, "--partition-key")
}

// TestDoctorTimeToLive tests the comparison of a table's Time to Live with the setting.
func TestDoctorTimeToLive(t *testing.T) {
	begin(t)
	target := dynamoserver.Find(t)
	env := tableOfItsOwn(t)
	all := examined(t, env, 0, "--ttl-attribute", "expires")
	finds(t, all, "ttl", "warning", "clients write expires, and Time to Live of the table is off", "--ttl-attribute expires")
	if !target.TimeToLive() { // nor can it be enabled; the unit tests cover that finding
		return
	}
	launch(t, env, nil, "table", "create", "--ttl-attribute", "expires").exits(0)
	well(t, examined(t, env, 0, "--ttl-attribute", "expires"))
	finds(t, examined(t, env, 0), "ttl", "warning", "goes by expires, which clients with these settings remove", "--ttl-attribute expires")
	finds(t, examined(t, env, 0, "--ttl-attribute", "other"), "ttl", "warning", "clients write other", "--ttl-attribute expires")
}

// TestDoctorItems tests the findings about foreign and corrupt items, and locks that never expire.
func TestDoctorItems(t *testing.T) {
	begin(t)
	env := tableOfItsOwn(t)
	putItem(t, env, map[string]types.AttributeValue{"id": attrS("order 7"), "total": attrN(12)})
	all := examined(t, env, 0)
	well(t, all, "foreign")
	finds(t, all, "foreign", "warning", `1 item of other programs in the table: "order 7"`, "a table for locks alone")
	well(t, examined(t, env, 0, "another prefix"))

	client, err := dynamolock.New(limited(t), dynamoserver.Find(t).Client(), &dynamolock.Options{
		Table: setting(env, "HOLDFAST_TABLE"), Mode: dynamolock.FailClosedFenced, Owner: "a dead one",
	})
	must(t, err)
	closeAtEnd(t, client.Client)
	lock, err := client.Acquire(limited(t), "left it's here")
	must(t, err)
	all = examined(t, env, 0)
	well(t, all, "foreign", "locks")
	finds(t, all, "locks", "warning", `"left it's here" is held by "a dead one" since `,
		"holdfast break 'left it'\\''s here' --table "+setting(env, "HOLDFAST_TABLE")+" --token "+lock.Token().String())
	// All of them have one cure.
	launch(t, env, nil, "break", "left it's here", "--token", lock.Token().String(), "--yes").exits(0)
	well(t, examined(t, env, 0), "foreign")

	putItem(t, env, map[string]types.AttributeValue{"id": attrS("corrupt"), "guid": attrS("x"), "fencingToken": attrS("many")})
	finds(t, examined(t, env, 1), "locks", "problem", "fencingToken", "mend or delete")

	var ids []string
	for _, item := range allItems(t, env) {
		ids = append(ids, item["id"].(*types.AttributeValueMemberS).Value)
	}
	if slices.Sort(ids); !slices.Equal(ids, []string{"corrupt", "left it's here", "order 7"}) {
		t.Errorf("the items are %q", ids)
	}
}

// TestDoctorManyLeft checks that doctor lists only some of many locks that never expire, and counts the rest.
func TestDoctorManyLeft(t *testing.T) {
	begin(t)
	env := tableOfItsOwn(t)
	for i := range 23 { // in the format of the npm client
		guid := &types.AttributeValueMemberB{Value: make([]byte, 64)}
		putItem(t, env, map[string]types.AttributeValue{"id": attrS("left " + strconv.Itoa(i)), "owner": attrS("gone"), "guid": guid})
	}
	putItem(t, env, map[string]types.AttributeValue{"id": attrS("a row"), "owner": attrS("somebody"), "guid": attrS("x"), "email": attrS("y")})
	all := examined(t, env, 0)
	well(t, all, "locks", "foreign")
	if n := strings.Count(allFound(all), `is held by "gone" since an unknown time, and never expires`); n != 20 {
		t.Errorf("%d locks are told one by one: %+v", n, all)
	}
	finds(t, all, "locks", "warning", "3 more locks never expire", "holdfast ls")
	finds(t, all, "foreign", "warning", `1 item of other programs in the table: "a row"`, "a table for locks alone")
}

// TestDoctorLatency checks that doctor reports slow calls.
func TestDoctorLatency(t *testing.T) {
	begin(t)
	env, proxy := broken(t)
	proxy.Transport.SetRule(faulthttp.Nth("UpdateItem", 5, faulthttp.DelayReply(300*time.Millisecond)))
	finds(t, examined(t, env, 1, "--lease", "1s"), "latency", "problem", "at worst of 10", "--lease")
}

// An exchange is a request and its reply, which a test may change.
type exchange struct {
	*http.Response
	call    string
	request []byte
}

// body decodes the reply.
func (x *exchange) body() (body map[string]any) {
	_ = json.NewDecoder(x.Body).Decode(&body)
	return body
}

// replace gives the reply another status and body.
func (x *exchange) replace(status int, body map[string]any) {
	text, _ := json.Marshal(body)
	x.StatusCode, x.Body, x.ContentLength = status, io.NopCloser(bytes.NewReader(text)), int64(len(text))
	x.Header.Set("Content-Length", strconv.Itoa(len(text)))
	x.Header.Del("X-Amz-Crc32")
}

// altered returns the settings of a table whose replies are changed.
func altered(t *testing.T, change func(x *exchange)) []string {
	t.Helper()
	env := tableOfItsOwn(t)
	upstream, err := url.Parse(setting(env, "AWS_ENDPOINT_URL_DYNAMODB"))
	must(t, err)
	type asked struct{}
	p := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			body, _ := io.ReadAll(r.In.Body) // what is cut off fails at the server
			r.Out = r.Out.WithContext(context.WithValue(r.Out.Context(), asked{}, body))
			r.Out.Body = io.NopCloser(bytes.NewReader(body))
			r.SetURL(upstream)
		},
		ModifyResponse: func(r *http.Response) error {
			_, call, _ := strings.Cut(r.Request.Header.Get("X-Amz-Target"), ".")
			change(&exchange{r, call, r.Request.Context().Value(asked{}).([]byte)})
			return nil
		},
	})
	t.Cleanup(p.Close)
	return append(env, "AWS_ENDPOINT_URL_DYNAMODB="+p.URL)
}

// TestDoctorReplies tests the findings that need replies that test servers do not give.
func TestDoctorReplies(t *testing.T) {
	begin(t)
	off := func(by time.Duration) func(*exchange) {
		return func(x *exchange) { x.Header.Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat)) }
	}
	refusing := func(code string, by time.Duration) func(*exchange) {
		return func(x *exchange) {
			x.replace(http.StatusBadRequest, map[string]any{"__type": "com.amazon.coral.service#" + code, "message": "No."})
			off(by)(x)
		}
	}
	table := func(field string, value any) func(*exchange) {
		return func(x *exchange) {
			if x.call == "DescribeTable" {
				body := x.body()
				body["Table"].(map[string]any)[field] = value
				x.replace(x.StatusCode, body)
			}
		}
	}
	region := setting(dynamoserver.Find(t).Env(), "AWS_REGION")
	for name, test := range map[string]struct {
		change func(x *exchange)
		want   finding
	}{
		"conditions are ignored, so no lock excludes anyone": {func(x *exchange) {
			if x.StatusCode == http.StatusBadRequest && bytes.Contains(x.request, []byte(`"attribute_not_exists(#p)"`)) {
				x.replace(http.StatusOK, map[string]any{})
			}
		}, finding{"reason", "problem", "a write whose condition does not hold succeeds", "DynamoDB itself"}},
		"another holder is shown": {func(x *exchange) {
			if x.call == "GetItem" {
				body := x.body()
				if item, _ := body["Item"].(map[string]any); item["owner"] != nil {
					item["owner"] = map[string]string{"S": "somebody else"}
				}
				x.replace(x.StatusCode, body)
			}
		}, finding{"lock", "problem", `is shown as held by "somebody else"`, "other programs"}},
		"the clock is too far off to sign": {off(10 * time.Minute), finding{"clock", "problem", "signatures are refused from 5m0s on", "NTP"}},
		"the clock is a little off":        {off(-time.Minute), finding{"clock", "ok", "behind this machine's", ""}},
		"a signature refused for its time": {
			refusing("InvalidSignatureException", 10*time.Minute),
			finding{"table", "problem", "InvalidSignatureException: No.; the clock of DynamoDB differs", "NTP"},
		},
		"unknown credentials": {
			refusing("UnrecognizedClientException", 0), finding{"table", "problem", "UnrecognizedClientException: No.", "credentials"},
		},
		"a throttled question": {func(x *exchange) {
			if x.call == "DescribeTimeToLive" {
				refusing("ThrottlingException", 0)(x)
			}
		}, finding{"ttl", "skipped", "ThrottlingException", "later"}},
		"a global table": {
			table("Replicas", []map[string]string{{"RegionName": region}, {"RegionName": "elsewhere"}}),
			finding{"replicas", "warning", "a global table, with replicas in elsewhere: ", "have all clients use " + region},
		},
		"a table being created": {table("TableStatus", "CREATING"), finding{"table", "problem", "is CREATING", "wait until"}},
		"a table being deleted": {table("TableStatus", "DELETING"), finding{"table", "problem", "is DELETING", "use another table"}},
		"a table being updated": {table("TableStatus", "UPDATING"), finding{"table", "ok", "is UPDATING", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			begin(t)
			want, env := test.want, altered(t, test.change)
			all := examined(t, env, map[string]int{"problem": 1}[want.Status])
			finds(t, all, want.ID, want.Status, want.Found, want.Cure)
			well(t, all, want.ID)
			nothingLeft(t, env)
		})
	}
}

// TestDoctorCredentials checks that doctor reports missing credentials, and never prints existing ones.
func TestDoctorCredentials(t *testing.T) {
	begin(t)
	env := tableOfItsOwn(t)
	secret := "HOLDFASTTESTSECRET"
	all := examined(t, append(env, "AWS_SECRET_ACCESS_KEY="+secret), 0)
	finds(t, all, "credentials", "ok", "EnvConfigCredentials", "")
	if strings.Contains(allFound(all), secret) {
		t.Errorf("the secret is told: %+v", all)
	}
	all = examined(t, append(env, "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "HOME=/nowhere"), 1)
	finds(t, all, "credentials", "problem", "there are none", "AWS_PROFILE")
	if n := len(all); all[n-1].ID != "credentials" {
		t.Errorf("without credentials it went on to %+v", all[n-1])
	}
}
