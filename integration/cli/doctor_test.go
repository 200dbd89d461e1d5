package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// A finding is a line of doctor's output.
type finding struct{ ID, Status, Found, Cure string }

// examined runs doctor with settings, and returns its findings. On a machine that stands still they prove nothing.
func examined(t *testing.T, settings []string, args ...string) (all []finding) {
	t.Helper()
	p := launch(t, settings, append([]string{"doctor", "--lease", calm, "-o", "json"}, args...)...)
	p.wait()
	status := 0
	for text := range strings.Lines(read(p.stdout)) {
		var f finding
		if err := json.Unmarshal([]byte(text), &f); err != nil || f.ID == "" || f.Found == "" || (f.Status == "ok") != (f.Cure == "") {
			t.Errorf("%s: %v", text, err)
		}
		if f.Status == "problem" {
			status = 1
		}
		all = append(all, f)
	}
	p.exits(status)
	return all
}

// finds fails the test unless a check has these findings, with texts in them.
func finds(t *testing.T, all []finding, want ...finding) {
	t.Helper()
	for _, w := range want {
		if !slices.ContainsFunc(all, func(f finding) bool {
			return f.ID == w.ID && f.Status == w.Status && strings.Contains(f.Found, w.Found) && strings.Contains(f.Cure, w.Cure)
		}) {
			verdict.Fatalf(t, "no %+v in %+v", w, all)
		}
	}
}

// TestDoctorCounter tests the findings about a sequence counter near or at its end.
func TestDoctorCounter(t *testing.T) {
	begin(t)
	s := zkserver.New(t, zkserver.Config{Controlled: true, MaxSessionTimeout: time.Minute})
	c := plainAt(t, s.Addr())
	const warn = math.MaxInt32 - 1<<27
	for name, n := range map[string]int32{"low": 1000, "under": warn - 1, "near": warn, "last": math.MaxInt32 - 1, "end": math.MaxInt32} {
		p := "/holdfast/" + name
		makeNodes(t, c, p, p+"/"+contender)
		must(t, s.SetCversion(p, n))
	}
	env := []string{"HOLDFAST_SERVERS=" + s.Addr()}
	finds(t, examined(t, env, "un"), finding{"counter", "ok", "at 2013265918 of 2147483647", ""})
	all := examined(t, env)
	finds(t, all,
		finding{"counter", "warning", "/holdfast/near is at 2013265919, 134217728 before its end", "delete /holdfast/near"},
		finding{"counter", "warning", "/holdfast/last is at 2147483646, 1 before its end", "delete /holdfast/last"},
		finding{"counter", "problem", "/holdfast/end is at its end", "delete /holdfast/end"})
}

// contender is the name of a contender's znode.
const contender = "_c_00000000-0000-4000-8000-000000000000-lock-0000000000"

// TestDoctorEnsemble tests roles, a diverged server, servers of different ensembles, and a server that is down.
func TestDoctorEnsemble(t *testing.T) {
	begin(t)
	e := zkserver.NewEnsemble(t, zkserver.Config{Controlled: true, MaxSessionTimeout: time.Minute})
	env := []string{"HOLDFAST_SERVERS=" + strings.Join(e.Addrs(), ",")}
	makeNodes(t, plainAt(t, e.Addrs()[0]), "/holdfast/key")
	finds(t, examined(t, env),
		finding{"role", "ok", ": leader, version ", ""}, finding{"role", "ok", ": follower, version ", ""},
		finding{"agreement", "ok", "3 servers show the same", ""})

	_, followers, err := e.Roles(limited(t))
	must(t, err)
	diverged := followers[0]
	_, err = plainAt(t, e.Addrs()[diverged]).Sync("/holdfast/key")
	must(t, err)
	must(t, e.Plant(diverged, "/holdfast/key/"+contender, []byte("ghost")))
	addr := e.Addrs()[diverged]
	finds(t, examined(t, env), finding{
		"agreement", "problem", addr + " has diverged from its ensemble: unlike the leader, it shows /holdfast/key/" + contender, "restart " + addr,
	})

	stranger := zookeeperServer(t)
	finds(t, examined(t, []string{"HOLDFAST_SERVERS=" + e.Addrs()[0] + "," + stranger.Addr()}),
		finding{"role", "problem", "1 of the 2 servers that are named stand alone", "one ensemble"},
		finding{"agreement", "problem", stranger.Addr() + " does not show", "one ensemble"})

	down := (diverged + 1) % len(e.Addrs())
	e.Servers()[down].Kill()
	must(t, e.WaitModes(limited(t), func(modes []string) bool {
		slices.Sort(modes)
		return slices.Equal(modes, []string{"", "follower", "leader"})
	}))
	finds(t, examined(t, env), finding{"server", "problem", e.Addrs()[down] + " cannot be reached: ", "start the server"}, finding{"lock", "ok", "", ""})
}

// TestDoctorServers tests observers, which are a problem behind an observer master, and a server that answers only srvr, as by default.
func TestDoctorServers(t *testing.T) {
	begin(t)
	for _, test := range []struct {
		config zkserver.Config
		want   finding
	}{
		{zkserver.Config{Observer: true}, finding{"role", "ok", ": observer of the leader, version ", ""}},
		{zkserver.Config{Observer: true, ObserverMaster: true}, finding{"role", "problem", ", a follower, has observers", "list the other servers"}},
	} {
		test.config.MaxSessionTimeout = time.Minute
		e := zkserver.NewEnsemble(t, test.config)
		finds(t, examined(t, []string{"HOLDFAST_SERVERS=" + strings.Join(e.Addrs(), ",")}), test.want, finding{"role", "ok", ": leader, version ", ""})
	}
	s := zkserver.New(t, zkserver.Config{MaxSessionTimeout: 40 * time.Second, Settings: map[string]string{"4lw.commands.whitelist": "srvr"}})
	finds(t, examined(t, []string{"HOLDFAST_SERVERS=" + s.Addr()}), finding{"role", "ok", "standalone", ""}, finding{"session", "ok", "and the servers give", ""})
	other := zookeeperServer(t).Addr()
	finds(t, examined(t, []string{"HOLDFAST_SERVERS=" + s.Addr() + "," + other}, "--lease", "50s"),
		finding{"session", "warning", s.Addr() + " gives sessions of 40s, and " + other + " of 50s", "minSessionTimeout"})
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
	env := newDynamoDB(t).direct
	upstream, err := url.Parse(setting(env, "AWS_ENDPOINT_URL_DYNAMODB"))
	must(t, err)
	type asked struct{}
	p := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			body, _ := io.ReadAll(r.In.Body) // a request that was cut off fails at the server
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
			if x.StatusCode == http.StatusBadRequest && bytes.Contains(x.request, []byte(`"attribute_exists(#p)"`)) {
				x.replace(http.StatusOK, map[string]any{})
			}
		}, finding{"permissions", "problem", "a write whose condition does not hold succeeds", "DynamoDB itself"}},
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
			finds(t, examined(t, env), want)
			nothingLeft(t, env)
		})
	}
}
