package main

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// rewrite writes a file and checks what it makes of a setting.
func rewrite(t *testing.T, path, text string, want string, setting func() string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := setting(); got != want {
		t.Errorf("with %.60q in the file, the setting is %q, want %q", text, got, want)
	}
}

// TestRenewedTLS checks that each connection uses the certificate, the key and the authorities that the files have by then, and the last
// good ones while a file is half written.
func TestRenewedTLS(t *testing.T) {
	s := httptest.NewTLSServer(nil)
	s.Close()
	cert := s.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	certText, keyText := block("CERTIFICATE", cert.Certificate[0]), block("PRIVATE KEY", key)
	dir := t.TempDir()
	z := tlsSettings{caFile: filepath.Join(dir, "ca"), certFile: filepath.Join(dir, "cert"), keyFile: filepath.Join(dir, "key")}
	var configure func() (*tls.Config, error)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	chain := func() string {
		c, err := configure()
		switch {
		case err != nil || c.InsecureSkipVerify || c.VerifyConnection != nil || c.ServerName != "":
			t.Errorf("the host name is not verified as usual: %+v (%v)", c, err)
		case !c.RootCAs.Equal(roots):
			return "other authorities"
		}
		return strconv.Itoa(len(c.Certificates[0].Certificate))
	}
	for file, text := range map[string]string{z.caFile: certText, z.certFile: certText, z.keyFile: keyText} {
		rewrite(t, file, text, "", func() string { return "" })
	}
	if configure, err = z.config(); err != nil {
		t.Fatal(err)
	}
	rewrite(t, z.certFile, certText+certText, "2", chain)
	rewrite(t, z.keyFile, keyText[:len(keyText)/2], "2", chain)
	rewrite(t, z.certFile, certText, "2", chain)
	rewrite(t, z.keyFile, keyText, "1", chain)
	rewrite(t, z.caFile, "", "1", chain)
	other, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, s.Certificate(), s.Certificate().PublicKey, cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, z.caFile, block("CERTIFICATE", other), "other authorities", chain)
}

// TestRenewedAuth checks that --auth-file is read again, and that a broken line keeps what was there.
func TestRenewedAuth(t *testing.T) {
	z := zooKeeper{authFile: filepath.Join(t.TempDir(), "auth")}
	rewrite(t, z.authFile, "digest:a:1\n", "", func() string { return "" })
	auth, err := newRenewed(z.credentials, z.authFile)
	if err != nil {
		t.Fatal(err)
	}
	password := func() string { return auth.get()[0].Credentials }
	rewrite(t, z.authFile, "dig", "a:1", password)
	rewrite(t, z.authFile, "digest:a:2\n", "a:2", password)
}

// TestRenewedKeys checks that keys in AWS's shared credentials file are read again, and that a file without keys keeps the last ones
// instead of another source of credentials.
func TestRenewedKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials")
	for name, value := range map[string]string{
		"AWS_SHARED_CREDENTIALS_FILE": file, "AWS_CONFIG_FILE": os.DevNull, "AWS_REGION": "eu-west-1", "AWS_PROFILE": "",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	keys := func(id string) string {
		return "[default]\naws_access_key_id = " + id + "\naws_secret_access_key = x\n"
	}
	rewrite(t, file, keys("OLD"), "", func() string { return "" })
	c, _, err := (&dynamoDB{table: "locks", partition: "id", mode: "fail-open"}).open(t.Context(), &app{})
	if err != nil {
		t.Fatal(err)
	}
	id := func() string {
		v, err := c.Options().Credentials.Retrieve(t.Context())
		if err != nil {
			t.Error(err)
		}
		return v.AccessKeyID
	}
	rewrite(t, file, keys("NEW")[:40], "OLD", id)
	rewrite(t, file, "", "OLD", id)
	rewrite(t, file, keys("NEW"), "NEW", id)
}

// TestBecause checks that the message about an expired lease names the error of the last heartbeat, and that about a broken lock does not.
func TestBecause(t *testing.T) {
	var a app
	a.beat.Store(&holdfast.Event{Err: errors.New("remote error: tls: expired certificate")})
	for cause, more := range map[error]string{holdfast.ErrSessionExpired: " (remote error: tls: expired certificate)", holdfast.ErrBroken: ""} {
		lost := &holdfast.LostError{Key: "a", Token: 1, Cause: cause}
		if got := a.because(lost); got.Error() != lost.Error()+more || !errors.Is(got, cause) {
			t.Errorf("%v", got)
		}
	}
}
