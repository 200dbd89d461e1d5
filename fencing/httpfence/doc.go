// Package httpfence carries the fencing token of a lock in HTTP requests, so that a service refuses the requests of former holders.
//
// The client sends the token in the header [Header]:
//
//	client := &http.Client{Transport: &httpfence.Transport{Token: lock.Token()}}
//	resp, err := client.Do(req)
//	...
//	if err := httpfence.Refused(resp); err != nil {
//		return err // fencing.ErrStale: another client has had the lock since
//	}
//
// The service has two ways to use it. They promise different things:
//
//   - [PassOn] hands the token to the handler, which claims the resource in the transaction that writes: see package sqlfence. The
//     database refuses a late write, wherever the handler, the service or a request was stopped, and with any number of replicas.
//     Use this if the data is in a database.
//   - [Serial] claims the resource in a [Store] and then runs one handler per resource at a time. After a handler with a greater token has
//     begun, no handler with a smaller token runs or begins. This holds for all replicas that use one store, while the store's hold
//     lasts. A hold in a database ends when the connection breaks, and the handler does not notice, so a process that is stopped for
//     long can still write late. Use Serial for files and devices, which compare nothing. It cannot stop a request that a handler has
//     sent elsewhere, nor a goroutine that a handler leaves behind: put http.TimeoutHandler around Serial, not within it.
//
// The service names the resource, and the client only sends the token. The token is no credential: authenticate clients as well.
//
// A request is refused with status 428 if it has no token, 400 if the token is malformed or 0, 412 and the header
// [RefusedHeader] if the token is stale, and 503 if the store failed.
//
// Claims are those of exclusive locks. Do not send the tokens of shared locks, whose holders would refuse each other.
package httpfence
