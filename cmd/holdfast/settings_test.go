package main

import (
	"strings"
	"testing"
)

// TestChoices checks that the values of a flag are offered by completion, and that --names takes
// each form that it offers.
func TestChoices(t *testing.T) {
	for flag, want := range map[string]string{
		"--engine": "zookeeper dynamodb",
		"--output": "text json",
		"--names":  "curator curator-latch curator-rw kazoo",
		"--acl":    "open creator",
		"--mode":   "fail-closed fail-closed-fenced fail-open",
	} {
		_, out, _ := call(t, nil, "__complete", "ls", flag, "")
		if got, _, _ := strings.Cut(out, "\n:"); strings.ReplaceAll(got, "\n", " ") != want {
			t.Errorf("%s is completed by %q, want %s", flag, got, want)
		}
	}
	for name := range nameForms {
		z := zooKeeper{servers: []string{"127.0.0.1:1"}, names: name, acl: "open"}
		if o, err := z.options(); err != nil || o.Names.String() != name {
			t.Errorf("--names %s makes %+v (%v)", name, o, err)
		}
	}
}

// TestCreatorByCertificate checks that TLS counts as an identity for --acl creator: the server derives it from the certificate.
func TestCreatorByCertificate(t *testing.T) {
	z := zooKeeper{servers: []string{"127.0.0.1:1"}, names: "curator", acl: "creator", tlsSettings: tlsSettings{tls: true}}
	if o, err := z.options(); err != nil || len(o.ACL) != 1 || o.ACL[0].Scheme != "auth" {
		t.Errorf("--acl creator with TLS makes %+v (%v)", o, err)
	}
}
