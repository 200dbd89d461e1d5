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
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/zklock"
)

// change writes a file and checks what it makes of a setting.
func change(t *testing.T, path, text string, want string, setting func() string) {
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
	for file, text := range map[string]string{z.caFile: certText, z.certFile: certText, z.keyFile: keyText} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure, err := z.config()
	if err != nil {
		t.Fatal(err)
	}
	first := now(t, configure)
	chain := func() string {
		c := now(t, configure)
		if !c.RootCAs.Equal(first.RootCAs) {
			return "other authorities"
		}
		return string(rune('0' + len(c.Certificates[0].Certificate)))
	}
	change(t, z.certFile, certText+certText, "2", chain)
	change(t, z.keyFile, keyText[:len(keyText)/2], "2", chain)
	change(t, z.certFile, certText, "2", chain)
	change(t, z.keyFile, keyText, "1", chain)
	change(t, z.caFile, "", "1", chain)
	other, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, s.Certificate(), s.Certificate().PublicKey, cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	change(t, z.caFile, block("CERTIFICATE", other), "other authorities", chain)
	if first.InsecureSkipVerify || first.VerifyConnection != nil || first.ServerName != "" {
		t.Errorf("the host name is not verified as usual: %+v", first)
	}
}

func now(t *testing.T, configure func() (*tls.Config, error)) *tls.Config {
	t.Helper()
	c, err := configure()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRenewedAuth checks that --auth-file is read again, and that a broken line keeps what was there.
func TestRenewedAuth(t *testing.T) {
	file := filepath.Join(t.TempDir(), "auth")
	z := zooKeeper{servers: []string{"127.0.0.1:1"}, names: "curator", acl: "open", authFile: file}
	change(t, file, "digest:a:1\n", "digest:a:1", func() string {
		if _, err := z.options(); err != nil {
			t.Fatal(err)
		}
		return joined(z.renewedAuth.get())
	})
	again := func() string { return joined(z.renewedAuth.get()) }
	change(t, file, "dig", "digest:a:1", again)
	change(t, file, "digest:a:2\n", "digest:a:2", again)
}

func joined(auth []zklock.Auth) (all string) {
	for _, a := range auth {
		all += a.Scheme + ":" + a.Credentials
	}
	return all
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
	var id func() string
	change(t, file, keys("OLD"), "OLD", func() string {
		d := dynamoDB{table: "locks", partition: "id", mode: "fail-open"}
		c, _, err := d.open(t.Context(), &app{})
		if err != nil {
			t.Fatal(err)
		}
		id = func() string {
			v, err := c.Options().Credentials.Retrieve(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return v.AccessKeyID
		}
		return id()
	})
	change(t, file, keys("NEW")[:40], "OLD", id)
	change(t, file, "", "OLD", id)
	change(t, file, keys("NEW"), "NEW", id)
	if err := os.Remove(file); err != nil || id() != "NEW" {
		t.Errorf("without the file the key is %s (%v)", id(), err)
	}
}

// TestBecause checks that the message about an expired lease names the error of the last heartbeat, and that about a broken lock does not.
func TestBecause(t *testing.T) {
	for cause, want := range map[error]string{
		holdfast.ErrSessionExpired: `lock "a" (token 1) lost: session expired (remote error: tls: expired certificate)`,
		holdfast.ErrBroken:         `lock "a" (token 1) lost: ` + holdfast.ErrBroken.Error(),
	} {
		var a app
		lost := &holdfast.LostError{Key: "a", Token: 1, Cause: cause}
		if got := a.because(lost); got != error(lost) {
			t.Errorf("without a heartbeat: %v", got)
		}
		a.beat.Store(&holdfast.Heartbeat{Err: errors.New("remote error: tls: expired certificate")})
		if got := a.because(lost); got.Error() != want || !errors.Is(got, cause) {
			t.Errorf("%v, want %s", got, want)
		}
	}
}
