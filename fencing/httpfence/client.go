package httpfence

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fencing"
)

// The headers of a request and of the response that refuses it.
const (
	Header        = "Fencing-Token"   // the token, in decimal
	RefusedHeader = "Fencing-Refused" // "stale"
	stale         = "stale"
)

// A Transport is an [http.RoundTripper] that adds the token of one lock to each request. Transports with one Base share its connections.
type Transport struct {
	Token holdfast.Token
	Base  http.RoundTripper // http.DefaultTransport if nil
}

// RoundTrip implements [http.RoundTripper]. It sends nothing if the token is 0.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := fencing.Check(Header, t.Token); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set(Header, t.Token.String())
	return cmp.Or(t.Base, http.DefaultTransport).RoundTrip(r)
}

// Refused returns an error that matches [fencing.ErrStale] if the service refused the request because its token is stale, else nil.
// It does not read the body of the response.
func Refused(resp *http.Response) error {
	if resp.StatusCode == http.StatusPreconditionFailed && resp.Header.Get(RefusedHeader) == stale {
		return fmt.Errorf("httpfence: %w", fencing.ErrStale)
	}
	return nil
}
