package main

import "testing"

// TestNames checks that --names takes each form that completion offers.
func TestNames(t *testing.T) {
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
