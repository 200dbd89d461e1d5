package integration_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/child"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/npm"
)

// fleetConfig is the one argument of a process in either language.
type fleetConfig struct {
	Name      string `json:"name"` // the owner of its locks
	Table     string `json:"table"`
	Partition string `json:"partitionKey"`
	Sort      string `json:"sortKey,omitempty"`
	Mode      string `json:"mode"` // the name in both languages: FailOpen, FailClosed
	Trust     bool   `json:"trust"`
	Lease     int    `json:"leaseMs"`
	Heartbeat int    `json:"heartbeatMs"`
	Poll      int    `json:"pollMs"`
	Retries   int    `json:"retries"`           // of Node
	Modules   string `json:"modules,omitempty"` // where Node finds packages
}

// fleetLease is the lease of all items: the minimum that the npm client recommends.
const fleetLease = 5 * time.Second

// options are the settings of our clients.
func (c *fleetConfig) options() *dynamolock.Options {
	o := &dynamolock.Options{
		Table:          c.Table,
		Keys:           dynamolock.Keys{Partition: dynamolock.KeyAttr{Name: c.Partition}, Sort: dynamolock.KeyAttr{Name: c.Sort}},
		Lease:          time.Duration(c.Lease) * time.Millisecond,
		Heartbeat:      time.Duration(c.Heartbeat) * time.Millisecond,
		Poll:           time.Duration(c.Poll) * time.Millisecond,
		TrustLocalTime: c.Trust,
		Owner:          c.Name,
	}
	if c.Mode == dynamolock.FailClosed.String() {
		o.Mode = dynamolock.FailClosed
	}
	return o
}

// dial returns one of our clients, which is closed when the test ends.
func (c fleetConfig) dial(t testing.TB, target *dynamoserver.Target, name string) *dynamolock.Client {
	t.Helper()
	c.Name = name
	client, err := dynamolock.New(limited(t), target.Client(), c.options())
	must(t, err)
	t.Cleanup(func() { must(t, client.Close(limited(t))) })
	return client
}

// newFleetConfig returns settings with a new table.
func newFleetConfig(t *testing.T, target *dynamoserver.Target, mode dynamolock.Mode, keys ...dynamoserver.Key) fleetConfig {
	t.Helper()
	modules, err := npm.Modules()
	must(t, err)
	c := fleetConfig{
		Table:     target.Table(t, keys...),
		Partition: dynamoserver.DefaultKey,
		Mode:      mode.String(),
		Lease:     int(fleetLease.Milliseconds()),
		Heartbeat: 1000,
		Poll:      100,
		Retries:   1,
		Modules:   modules,
	}
	if len(keys) > 0 {
		c.Partition = keys[0].Name
	}
	if len(keys) > 1 {
		c.Sort = keys[1].Name
	}
	return c
}

// A fleetProcess is a child that reports.
type fleetProcess struct {
	*child.Process
	name     string
	language fleetLanguage
	log      string
	expected atomic.Bool   // we ended it
	gone     chan struct{} // closed when the last report was heard
}

// peer starts a process with these settings.
func (c *fleetConfig) peer(t *testing.T, target *dynamoserver.Target, language fleetLanguage, heard func(fleetReport)) *peer {
	t.Helper()
	argument, err := json.Marshal(c)
	must(t, err)
	command := goPeerCommand("dynamolock", string(argument))
	if language == fleetNode {
		node, err := npm.Node()
		must(t, err)
		program := filepath.Join("testdata", "mixedfleet", "obey.js")
		command = []string{"AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE=1", node, program, string(argument)}
	}
	return startPeer(t, language, c.Name, append(target.Env(), command...), heard)
}

func (p *fleetProcess) logged() string {
	log, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// kill ends the process as a crash would, and returns when all its reports are in.
func (p *fleetProcess) kill() {
	p.expected.Store(true)
	p.Kill()
	<-p.gone
}

// finish makes the process end in an orderly way.
func (p *fleetProcess) finish(t *testing.T) {
	p.expected.Store(true)
	_ = p.Stdin.Close()
	select {
	case <-p.Done():
		if err := p.Err().Error(); err != "exit status 0" {
			t.Errorf("%s %s: %s; its log ends:\n%s", p.language, p.name, err, p.logged())
		}
	case <-time.After(patience):
		t.Errorf("%s %s goes on without a parent; its log ends:\n%s", p.language, p.name, p.logged())
	}
	p.kill()
}

// fleetService is a client of the service that the environment names.
func fleetService() *dynamodb.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = transport.MaxIdleConns
	transport.IdleConnTimeout = 3 * time.Second // less than a server in Node waits
	return dynamodb.New(dynamodb.Options{
		Region:       os.Getenv("AWS_REGION"),
		BaseEndpoint: aws.String(os.Getenv("DYNAMODB_ENDPOINT")),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{
				AccessKeyID:     os.Getenv("AWS_ACCESS_KEY_ID"),
				SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
				SessionToken:    os.Getenv("AWS_SESSION_TOKEN"),
			}, nil
		}),
		HTTPClient: &http.Client{Transport: transport},
	})
}
