package dynamolock

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
)

// Each write of a held lock has a new guid, so that an observer can tell whether the
// holder is alive. To other programs a guid is 64 random bytes, such as the npm client
// writes. Those of holdfast have parts:
//
//	client (16)  grant (16)  number (16)  random (16)
//
// A condition on the first 32 recognises a grant, whichever of its writes (touches) was
// the last to arrive; one on the first 16 recognises a client. The number rises from
// touch to touch, and with it the guid, so that a delayed heartbeat cannot go back to a
// guid that observers have seen before.
//
// Guids are letters and digits, because not every server compares the beginnings of
// binary values byte by byte.
const (
	guidLen   = 64
	clientLen = 16
	grantLen  = 32 // client included
	numberLen = 16
)

// newClientID returns the beginning of all guids of a client.
func newClientID() string { return random(clientLen) }

// newGrant returns the beginning of all guids of one grant.
func newGrant(client string) string { return client + random(grantLen-clientLen) }

// touch returns the n-th guid of a grant. It is greater than those before it.
func touch(grant string, n uint64) string {
	return grant + ordered(n) + random(guidLen-grantLen-numberLen)
}

// ordered writes a number so that the texts sort like the numbers: a letter from A to P
// for each four bits.
func ordered(n uint64) string {
	var b [numberLen]byte
	for i := range b {
		b[len(b)-1-i] = 'A' + byte(n>>(4*i)&15)
	}
	return string(b[:])
}

// stranger returns a guid that belongs to no grant.
func stranger() string { return random(guidLen) }

func random(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(rand.Text())
	}
	return b.String()[:n]
}

// grantOf returns the part of a guid that names the grant, or false for a guid of another
// program.
func grantOf(guid string) (string, bool) {
	if len(guid) != guidLen || strings.Trim(guid, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return "", false
	}
	return guid[:grantLen], true
}

// grantID identifies one grant of a key, however often its guid has changed since. Its
// text is in [driver.Info.Grant].
type grantID struct {
	form   form
	shared bool // of leased: it shares the key with others
	token  driver.Token
	grant  string // the part of the guid that names the grant; "" for another program's
	guid   string // of a tokenless one of another program
}

// grant returns the identity of the grant of an item that is held.
func (i *item) grant() grantID {
	id := grantID{form: i.form, token: i.token}
	id.grant, _ = grantOf(i.guid)
	if i.form == tokenless && id.grant == "" {
		id.guid = i.guid
	}
	return id
}

// String returns the identity as text:
//
//	shared:TOKEN:GRANT   leased:TOKEN:GRANT   closed:TOKEN:GRANT   tokenless::GRANT   guid:B:BASE64
func (g grantID) String() string {
	switch {
	case g.shared:
		return fmt.Sprintf("shared:%d:%s", g.token, g.grant)
	case g.form == leased:
		return fmt.Sprintf("leased:%d:%s", g.token, g.grant)
	case g.form == closed:
		return fmt.Sprintf("closed:%d:%s", g.token, g.grant)
	}
	if g.grant != "" {
		return "tokenless::" + g.grant
	}
	return "guid:B:" + base64.StdEncoding.EncodeToString([]byte(g.guid))
}

// parseGrant parses what String returns.
func parseGrant(text string) (grantID, error) {
	parts := strings.Split(text, ":")
	bad := driver.Invalid("info.Grant", "%q is not one of dynamolock", text)
	if len(parts) != 3 {
		return grantID{}, bad
	}
	id := grantID{form: tokenless}
	switch parts[0] {
	case "leased":
		id.form = leased
	case "shared":
		id.form, id.shared = leased, true
	case "closed":
		id.form = closed
	case "tokenless":
		id.grant = parts[2]
		if parts[1] != "" || len(id.grant) != grantLen {
			return grantID{}, bad
		}
		return id, nil
	case "guid":
		guid, err := base64.StdEncoding.DecodeString(parts[2])
		if err != nil || parts[1] != "B" || len(guid) != guidLen {
			return grantID{}, bad
		}
		id.guid = string(guid)
		return id, nil
	default:
		return grantID{}, bad
	}
	token, err := strconv.ParseUint(parts[1], 10, 64)
	if err != nil || id.shared && parts[2] == "" || (parts[2] != "" && len(parts[2]) != grantLen) {
		return grantID{}, bad
	}
	id.token, id.grant = driver.Token(token), parts[2]
	return id, nil
}
