package faulthttp

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
)

// answer is an error in the form of DynamoDB's JSON protocol.
type answer struct {
	status     int
	code, text string
}

// namespaces are what DynamoDB writes before an error code. Errors of the service's own model have the last.
var namespaces = map[string]string{
	"AccessDeniedException": "com.amazon.coral.service#",
	"ThrottlingException":   "com.amazon.coral.availability#",
	"":                      "com.amazonaws.dynamodb.v20120810#",
}

func (a *answer) response(req *http.Request) *http.Response {
	namespace, ok := namespaces[a.code]
	if !ok {
		namespace = namespaces[""]
	}
	body, err := json.Marshal(map[string]string{"__type": namespace + a.code, "message": a.text})
	if err != nil {
		panic(err) // two strings
	}
	return &http.Response{
		Status:        strconv.Itoa(a.status) + " " + http.StatusText(a.status),
		StatusCode:    a.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		ContentLength: int64(len(body)),
		Body:          io.NopCloser(bytes.NewReader(body)),
		Request:       req,
		Header: http.Header{
			"Content-Type":     {"application/x-amz-json-1.0"},
			"X-Amzn-Requestid": {rand.Text() + rand.Text()},
			// Of the body as it is; the SDK checks it.
			"X-Amz-Crc32": {strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10)},
		},
	}
}
