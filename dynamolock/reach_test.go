package dynamolock_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast/dynamolock"
)

// answerDNS answers one question: with these addresses if it is for A records, and else with none.
func answerDNS(c net.Conn, addresses ...string) {
	defer c.Close()
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return
	}
	question := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, question); err != nil {
		return
	}
	end := 12
	for question[end] != 0 {
		end += 1 + int(question[end])
	}
	answer := question[: end+5 : end+5]
	answer[2], answer[3] = 0x81, 0x80
	copy(answer[4:], []byte{0, 1, 0, 0, 0, 0, 0, 0})
	if question[end+2] == 1 {
		answer[7] = byte(len(addresses))
		for _, a := range addresses {
			answer = append(append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4), net.ParseIP(a).To4()...)
		}
	}
	_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
}

// An endpoint whose name has several addresses is reached within the time limit of a request, though the first is silent: a dial of the
// name, or of that address, takes longer than New.
func TestEndpointWithASilentAddress(t *testing.T) {
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		c, server := net.Pipe()
		go answerDNS(server, "127.0.0.2", "127.0.0.3", "127.0.0.4")
		return c, nil
	}}
	defer func() { net.DefaultResolver = before }()
	replies := &script{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply, err := replies.RoundTrip(r)
		if err != nil {
			t.Error(err)
			return
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = io.Copy(w, reply.Body)
	}))
	defer server.Close()
	built := awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) {
		tr.Proxy = nil
		tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == "127.0.0.4:80" {
				return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	ddb := dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String("http://ddb.test"), Credentials: someCredentials, HTTPClient: built,
	})
	c, err := dynamolock.New(within(t, time.Minute), ddb, &dynamolock.Options{Table: "locks", Lease: 4 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(within(t, time.Minute)); err != nil {
		t.Error(err)
	}
}
