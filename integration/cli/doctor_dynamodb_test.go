package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
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
	if err != nil {
		t.Fatal(err)
	}
}

// allItems reads the table of settings.
func allItems(t *testing.T, env []string) []map[string]types.AttributeValue {
	t.Helper()
	out, err := dynamoserver.Find(t).Client().Scan(limited(t), &dynamodb.ScanInput{
		TableName: aws.String(setting(env, "HOLDFAST_TABLE")), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Items
}

// broken returns the settings of a table behind a proxy, and the proxy.
func broken(t *testing.T) ([]string, *faulthttp.Proxy) {
	t.Helper()
	env := tableOfItsOwn(t)
	p, err := faulthttp.Listen(setting(env, "AWS_ENDPOINT_URL_DYNAMODB"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return append(env, "AWS_ENDPOINT_URL_DYNAMODB="+p.URL()), p
}

// TestDoctorDenied checks that doctor names each forbidden call as a policy does, calls
// it a problem only if locks need it, and leaves nothing behind.
func TestDoctorDenied(t *testing.T) {
	t.Parallel()
	env, proxy := broken(t)
	for _, test := range []struct {
		call, id, status, found string
		mode                    string
	}{
		{"DescribeTable", "table", "problem", "dynamodb:DescribeTable on ", ""},
		{"GetItem", "permissions", "problem", "dynamodb:GetItem is denied", ""},
		{"UpdateItem", "permissions", "problem", "dynamodb:UpdateItem is denied", ""},
		{"DeleteItem", "permissions", "warning", "dynamodb:DeleteItem is denied", "fail-open"},
		{"DeleteItem", "permissions", "problem", "dynamodb:DeleteItem is denied", "fail-closed"},
		{"Scan", "permissions", "warning", "dynamodb:Scan is denied", ""},
		{"TransactWriteItems", "permissions", "warning", "dynamodb:ConditionCheckItem is denied", ""},
		{"DescribeTimeToLive", "ttl", "warning", "not told", ""},
	} {
		proxy.Transport.SetRule(faulthttp.All(test.call, faulthttp.Denied()))
		status, args := 0, []string{}
		if test.status == "problem" {
			status = 1
		}
		if test.mode != "" {
			args = []string{"--mode", test.mode}
		}
		cure := map[bool]string{false: "allow dynamodb:"}[test.status == "ok"]
		all := examined(t, env, status, args...)
		finds(t, all, test.id, test.status, test.found, cure)
		well(t, all, test.id)
		nothingLeft(t, env)
		if t.Failed() {
			t.Fatalf("with %s denied", test.call)
		}
	}
}

// TestDoctorQueryDenied is TestDoctorDenied for the one call that only tables with a sort
// key need. It also tests doctor on such tables.
func TestDoctorQueryDenied(t *testing.T) {
	t.Parallel()
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

// TestDoctorTable tests the findings about unsuitable tables, each with the command or
// setting that helps.
func TestDoctorTable(t *testing.T) {
	t.Parallel()
	env := tableOfItsOwn(t)
	finds(t, examined(t, env, 1, "--table", "no-such-table"), "table", "problem", "there is no table no-such-table", "holdfast table create --table no-such-table")
	finds(t, examined(t, env, 1, "--sort-key", "s"), "schema", "problem", `"s" is expected`, "--sort-key")
	finds(t, examined(t, env, 1, "--partition-key", "other:N"), "schema", "problem", `is "id", not "other"`, "--partition-key")
}

// TestDoctorTimeToLive tests the comparison of a table's Time to Live with the
// setting.
func TestDoctorTimeToLive(t *testing.T) {
	t.Parallel()
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

// TestDoctorItems tests the findings about items: those of other programs, those of locks
// that never expire, with the command that breaks them, and corrupt ones.
func TestDoctorItems(t *testing.T) {
	t.Parallel()
	env := tableOfItsOwn(t)
	putItem(t, env, map[string]types.AttributeValue{"id": attrS("order 7"), "total": attrN(12)})
	all := examined(t, env, 0)
	well(t, all, "foreign")
	finds(t, all, "foreign", "warning", `1 item of other programs in the table: "order 7"`, "a table for locks alone")
	well(t, examined(t, env, 0, "another prefix"))

	client, err := dynamolock.New(limited(t), dynamoserver.Find(t).Client(), &dynamolock.Options{
		Table: setting(env, "HOLDFAST_TABLE"), Mode: dynamolock.FailClosedFenced, Owner: "a dead one",
	})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, client.Client)
	lock, err := client.Acquire(limited(t), "left it's here")
	if err != nil {
		t.Fatal(err)
	}
	all = examined(t, env, 0)
	well(t, all, "foreign", "locks")
	finds(t, all, "locks", "warning", `"left it's here" is held by "a dead one" since `,
		"holdfast break 'left it'\\''s here' --table "+setting(env, "HOLDFAST_TABLE")+" --token "+lock.Token().String())
	// All of them have one cure.
	launch(t, env, nil, "break", "left it's here", "--token", lock.Token().String(), "--yes").exits(0)
	well(t, examined(t, env, 0), "foreign")

	putItem(t, env, map[string]types.AttributeValue{"id": attrS("corrupt"), "guid": attrS("x"), "fencingToken": attrS("many")})
	finds(t, examined(t, env, 1), "locks", "problem", "fencingToken", "mend or delete")

	if ids := slices.Sorted(maps.Keys(byID(allItems(t, env)))); !slices.Equal(ids, []string{"corrupt", "left it's here", "order 7"}) {
		t.Errorf("the items are %q", ids)
	}
}

// TestDoctorManyLeft checks that doctor counts many locks that never expire, and they do
// not hide the rest.
func TestDoctorManyLeft(t *testing.T) {
	t.Parallel()
	env := tableOfItsOwn(t)
	for i := range 23 { // in the format of the npm client
		putItem(t, env, map[string]types.AttributeValue{"id": attrS("left " + strconv.Itoa(i)), "owner": attrS("gone"), "guid": attrS("x")})
	}
	all := examined(t, env, 0)
	well(t, all, "locks")
	if n := strings.Count(allFound(all), `is held by "gone" since an unknown time, and never expires`); n != 20 {
		t.Errorf("%d locks are told one by one: %+v", n, all)
	}
	finds(t, all, "locks", "warning", "3 more locks never expire", "holdfast ls")
}

func byID(items []map[string]types.AttributeValue) map[string]bool {
	ids := make(map[string]bool)
	for _, item := range items {
		ids[item["id"].(*types.AttributeValueMemberS).Value] = true
	}
	return ids
}

// TestDoctorLatency checks that doctor reports slow calls.
func TestDoctorLatency(t *testing.T) {
	t.Parallel()
	env, proxy := broken(t)
	proxy.Transport.SetRule(faulthttp.Nth("UpdateItem", 5, faulthttp.DelayReply(300*time.Millisecond)))
	finds(t, examined(t, env, 1, "--lease", "1s"), "latency", "problem", "at worst of 10", "--lease")
}

// altered returns the settings of a table with changed replies. change also gets the
// request.
func altered(t *testing.T, change func(answer *http.Response, request []byte) error) []string {
	t.Helper()
	env := tableOfItsOwn(t)
	upstream, err := url.Parse(setting(env, "AWS_ENDPOINT_URL_DYNAMODB"))
	if err != nil {
		t.Fatal(err)
	}
	type asked struct{}
	p := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			body, _ := io.ReadAll(r.In.Body) // what is cut off fails at the server
			r.Out = r.Out.WithContext(context.WithValue(r.Out.Context(), asked{}, body))
			r.Out.Body = io.NopCloser(bytes.NewReader(body))
			r.SetURL(upstream)
		},
		ModifyResponse: func(r *http.Response) error { return change(r, r.Request.Context().Value(asked{}).([]byte)) },
	})
	t.Cleanup(p.Close)
	return append(env, "AWS_ENDPOINT_URL_DYNAMODB="+p.URL)
}

// replace gives a reply another status and body.
func replace(r *http.Response, status int, body []byte) {
	r.StatusCode, r.Body, r.ContentLength = status, io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	r.Header.Del("X-Amz-Crc32")
}

// TestDoctorConditions guards against a server that ignores conditions: there, no lock
// excludes anyone.
func TestDoctorConditions(t *testing.T) {
	t.Parallel()
	env := altered(t, func(r *http.Response, request []byte) error {
		if r.StatusCode == http.StatusBadRequest && bytes.Contains(request, []byte(`"attribute_not_exists(#p)"`)) {
			replace(r, http.StatusOK, []byte("{}"))
		}
		return nil
	})
	finds(t, examined(t, env, 1), "reason", "problem", "a write whose condition does not hold succeeds", "DynamoDB itself")
}

// TestDoctorLock guards against an engine that shows another lock than the acquired one.
func TestDoctorLock(t *testing.T) {
	t.Parallel()
	env := altered(t, func(r *http.Response, _ []byte) error {
		if !strings.HasSuffix(r.Request.Header.Get("X-Amz-Target"), ".GetItem") {
			return nil
		}
		var body struct{ Item map[string]any }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return err
		}
		if body.Item["owner"] != nil {
			body.Item["owner"] = map[string]string{"S": "somebody else"}
		}
		text, err := json.Marshal(body)
		replace(r, r.StatusCode, text)
		return err
	})
	finds(t, examined(t, env, 1), "lock", "problem", `is shown as held by "somebody else"`, "other programs")
	nothingLeft(t, env)
}

// TestDoctorClock checks that a clock that is too far off to sign requests is a problem,
// and that a small offset is none.
func TestDoctorClock(t *testing.T) {
	t.Parallel()
	off := func(by time.Duration) []string {
		return altered(t, func(r *http.Response, _ []byte) error {
			r.Header.Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat))
			return nil
		})
	}
	finds(t, examined(t, off(10*time.Minute), 1), "clock", "problem", "signatures are refused from 5m0s on", "NTP")
	all := examined(t, off(-time.Minute), 0)
	well(t, all)
	finds(t, all, "clock", "ok", "behind this machine's", "")
}

// TestDoctorSignature checks that doctor reports a signature refused for its time as
// such, and other refusals differently.
func TestDoctorSignature(t *testing.T) {
	t.Parallel()
	refusing := func(code string, by time.Duration) []string {
		return altered(t, func(r *http.Response, _ []byte) error {
			body := `{"__type":"com.amazon.coral.service#` + code + `","message":"No."}`
			replace(r, http.StatusBadRequest, []byte(body))
			r.Header.Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat))
			return nil
		})
	}
	finds(t, examined(t, refusing("InvalidSignatureException", 10*time.Minute), 1), "table", "problem", "InvalidSignatureException: No.; the clock of DynamoDB differs", "NTP")
	finds(t, examined(t, refusing("UnrecognizedClientException", 0), 1), "table", "problem", "UnrecognizedClientException: No.", "credentials")
}

// TestDoctorDescription tests the findings about tables that test servers do not have: a
// global one, and one that is being created.
func TestDoctorDescription(t *testing.T) {
	t.Parallel()
	with := func(field string, value any) []string {
		return altered(t, func(r *http.Response, _ []byte) error {
			if !strings.HasSuffix(r.Request.Header.Get("X-Amz-Target"), ".DescribeTable") {
				return nil
			}
			var body struct{ Table map[string]any }
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				return err
			}
			body.Table[field] = value
			text, err := json.Marshal(body)
			replace(r, r.StatusCode, text)
			return err
		})
	}
	all := examined(t, with("Replicas", []map[string]string{{"RegionName": "eu-north-1"}}), 0)
	well(t, all, "replicas")
	finds(t, all, "replicas", "warning", "a global table, with replicas in eu-north-1", "have all clients use ")
	all = examined(t, with("TableStatus", "CREATING"), 1)
	finds(t, all, "table", "problem", "is CREATING", "wait until")
}

// TestDoctorCredentials checks that doctor reports missing credentials as such, and never
// prints existing ones.
func TestDoctorCredentials(t *testing.T) {
	t.Parallel()
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
