package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// Local are the engines that need no server, by name. The tests run the examples on
// each of them.
func Local() map[string]func() *Engine {
	return map[string]func() *Engine{"memory": Memory, "dynamodb": DynamoFake}
}

// DynamoFake is an engine on the in-process fake of DynamoDB that the tests use.
func DynamoFake() *Engine {
	db := dynamofake.New()
	db.Latency = 4 * time.Millisecond
	e := onDynamoDB("holdfast", func() *Client {
		conn := db.Client()
		return &Client{API: conn, Cut: conn.Cut, Heal: conn.Heal}
	})
	e.Where = "an in-process fake of DynamoDB"
	e.Local = true
	return e
}
