package dynamolock

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// A reach is a copy of an HTTP client that the SDK has built. It dials each address of the endpoint within the limit of a request.
type reach struct {
	timeout time.Duration
	first   sync.Once    // copies the client that the SDK has built
	copy    *http.Client // nil if there is none
}

// once is the option of each request. The SDK's own retries would depend on a quota that all users of its client share, not on the lease.
func (r *reach) once(o *dynamodb.Options) {
	o.Retryer = aws.NopRetryer{}
	built, ok := o.HTTPClient.(*awshttp.BuildableClient)
	if !ok {
		return
	}
	r.first.Do(func() {
		names := cmp.Or(built.GetDialer().Resolver, net.DefaultResolver)
		r.copy, _ = built.WithTransportOptions(func(tr *http.Transport) {
			if one := tr.DialContext; one != nil { // else the transport dials by itself
				tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					return r.dial(ctx, names, addr, func(ctx context.Context, addr string) (net.Conn, error) { return one(ctx, network, addr) })
				}
			}
		}).Freeze().(*http.Client)
	})
	if r.copy != nil {
		o.HTTPClient = r.copy
	}
}

func (r *reach) close() {
	r.first.Do(func() {})
	if r.copy != nil {
		r.copy.CloseIdleConnections()
	}
}

// dial dials the addresses of a name in turn. All but the last share half of the time limit.
func (r *reach) dial(
	ctx context.Context, names *net.Resolver, addr string, one func(context.Context, string) (net.Conn, error),
) (net.Conn, error) {
	host, port, _ := net.SplitHostPort(addr)
	all, err := names.LookupHost(ctx, host)
	if err != nil || len(all) < 2 {
		return one(ctx, addr)
	}
	var causes error
	for i, ip := range all {
		attempt, cancel := ctx, context.CancelFunc(func() {})
		if i < len(all)-1 {
			attempt, cancel = context.WithTimeout(ctx, r.timeout/time.Duration(2*len(all)))
		}
		conn, err := one(attempt, net.JoinHostPort(ip, port))
		cancel()
		if err == nil {
			return conn, nil
		}
		causes = errors.Join(causes, err) // each names its address
	}
	return nil, causes
}
