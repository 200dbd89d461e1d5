package dynamolock

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// A reach is how requests reach the table. Where the SDK has built the HTTP client, requests go through a copy of it that dials each
// address of the endpoint within the time limit of a request: the SDK's dialer would stay for seconds with one that is silent.
type reach struct {
	timeout time.Duration

	mu    sync.Mutex
	built *awshttp.BuildableClient // the SDK's
	copy  *http.Client
}

// once is the option of each request. It also switches off the SDK's retries: whether and when to retry depends on the lease, and must
// not depend on a quota that all users of the SDK's client share.
func (r *reach) once(o *dynamodb.Options) {
	o.Retryer = aws.NopRetryer{}
	built, ok := o.HTTPClient.(*awshttp.BuildableClient)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.built != built {
		tr := built.GetTransport()
		tr.DialContext = r.each(tr.DialContext)
		r.built = built
		r.copy = &http.Client{Transport: tr, Timeout: built.GetTimeout(), CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}
	}
	o.HTTPClient = r.copy
}

func (r *reach) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.copy != nil {
		r.copy.CloseIdleConnections()
	}
}

type dial = func(ctx context.Context, network, addr string) (net.Conn, error)

// each dials the addresses of a name in turn. All but the last share half of the time limit.
func (r *reach) each(one dial) dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, port, _ := net.SplitHostPort(addr)
		all, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil || len(all) < 2 {
			return one(ctx, network, addr)
		}
		for _, ip := range all[:len(all)-1] {
			attempt, cancel := context.WithTimeout(ctx, r.timeout/time.Duration(2*len(all)))
			conn, err := one(attempt, network, net.JoinHostPort(ip, port))
			cancel()
			if err == nil {
				return conn, nil
			}
		}
		return one(ctx, network, net.JoinHostPort(all[len(all)-1], port))
	}
}
