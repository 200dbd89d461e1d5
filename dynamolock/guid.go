package dynamolock

import (
	"crypto/rand"
	"strings"
)

// A guid is new at every write of a live lock, so that an observer can tell
// whether the holder lives. To other programs it is 64 random bytes, as the
// npm client writes them. The ones of holdfast have parts:
//
//	client (16)  grant (16)  touch (32)
//
// so that one condition, on the first 32, recognises a grant by whichever
// touch of it was the last to arrive, and one on the first 16 a client.
// They are letters and digits, because not every server compares the beginnings
// of binary values byte by byte.
const (
	guidLen   = 64
	clientLen = 16
	grantLen  = 32 // client included
)

// newClientID returns the beginning of all guids of a client.
func newClientID() string { return random(clientLen) }

// newGrant returns the beginning of all guids of one grant.
func newGrant(client string) string { return client + random(grantLen-clientLen) }

// touch returns a guid that no write before has had.
func touch(grant string) string { return grant + random(guidLen-grantLen) }

// stranger returns a guid that belongs to no grant.
func stranger() string { return random(guidLen) }

func random(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(rand.Text())
	}
	return b.String()[:n]
}

// grantOf returns the part of a guid that stays the same for as long as the
// grant does, or false for one of another program.
func grantOf(guid string) (string, bool) {
	if len(guid) != guidLen || strings.Trim(guid, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return "", false
	}
	return guid[:grantLen], true
}
