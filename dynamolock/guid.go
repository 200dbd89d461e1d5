package dynamolock

import (
	"crypto/rand"
	"strings"
)

// A guid is new at every write of a live lock, so that an observer can tell
// whether the holder lives. To other programs it is 64 random bytes, as the
// npm client writes them. The ones of holdfast have parts:
//
//	client (16)  grant (16)  number (16)  random (16)
//
// so that one condition, on the first 32, recognises a grant by whichever
// touch of it was the last to arrive, and one on the first 16 a client. The
// number rises from touch to touch, and the guid with it, so that a heartbeat
// can refuse to go back to one that observers have seen before.
//
// They are letters and digits, because not every server compares the beginnings
// of binary values byte by byte.
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

// ordered writes a number such that greater ones come later: a letter from A to
// P for each four bits.
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

// grantOf returns the part of a guid that stays the same for as long as the
// grant does, or false for one of another program.
func grantOf(guid string) (string, bool) {
	if len(guid) != guidLen || strings.Trim(guid, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return "", false
	}
	return guid[:grantLen], true
}
