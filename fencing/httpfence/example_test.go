package httpfence_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fencing/httpfence"
	"github.com/holdfast-go/holdfast/fencing/sqlfence"
)

// order handles an order in one transaction, which begins with the claim.
func order(db *sql.DB, w http.ResponseWriter, r *http.Request) {
	tx, err := db.BeginTx(r.Context(), nil)
	if err == nil {
		defer tx.Rollback()
		err = sqlfence.PostgreSQL.Claim(r.Context(), tx, "orders", httpfence.Token(r.Context()))
	}
	if err != nil {
		httpfence.Refuse(w, err)
		return
	}
	// read and write in tx, and commit it
}

// ordersService passes the tokens of its requests on to order.
func ordersService(db *sql.DB) http.Handler {
	return httpfence.PassOn(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { order(db, w, r) }))
}

// deviceService runs one request at a time.
func deviceService(store httpfence.Store, write http.Handler) http.Handler {
	return httpfence.Serial(store, func(*http.Request) string { return "device" }, write)
}

// send sends a request under a lock.
func send(ctx context.Context, token holdfast.Token, url string) error {
	client := &http.Client{Transport: &httpfence.Transport{Token: token}} // of the lock
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return httpfence.Refused(resp) // fencing.ErrStale: a later holder has claimed the resource
}

func Example() {
	_ = ordersService // needs a database
	device := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fmt.Println("the device is switched") })
	service := httptest.NewServer(deviceService(new(httpfence.Memory), device))
	defer service.Close()
	for _, token := range []holdfast.Token{33, 34, 33} { // the last is late
		fmt.Println(send(context.Background(), token, service.URL))
	}
	// Output:
	// the device is switched
	// <nil>
	// the device is switched
	// <nil>
	// httpfence: a later holder has claimed the resource
}
