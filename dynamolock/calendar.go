package dynamolock

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	smithy "github.com/aws/smithy-go/middleware"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// A calendar knows what time it is to the server, which deletes items by that, and for whose
// items' tokens it must not have been later before. A client's own wall clock may be days slow:
// the SDK signs requests by the server's time, too.
type calendar struct {
	mu   strict.Mutex[strict.Calendar]
	date time.Time      // of the last answer that had one; zero: none
	at   driver.Instant // not before that
}

// heard notes the date of an answer; out is the output of an operation.
func (c *calendar) heard(out any, now driver.Instant) {
	date, ok := middleware.GetServerTime(metadata(out))
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.date, c.at = date, now
}

// now is the server's time, or the client's if that is later: who is fast lets items live
// longer. The clocks say how long ago the date was; one stands still while the machine is
// suspended, and the other may be set back.
func (c *calendar) now(now driver.Instant) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := max(now.Sub(c.at), now.Wall.Sub(c.at.Wall))
	if server := c.date.Add(since); !c.date.IsZero() && server.After(now.Wall) {
		return server
	}
	return now.Wall
}

// metadata is that of the outputs of operations.
func metadata(out any) smithy.Metadata {
	switch out := out.(type) {
	case *dynamodb.UpdateItemOutput:
		return out.ResultMetadata
	case *dynamodb.GetItemOutput:
		return out.ResultMetadata
	case *dynamodb.DeleteItemOutput:
		if out != nil { // a wrapper may have nothing to return
			return out.ResultMetadata
		}
	case *dynamodb.QueryOutput:
		return out.ResultMetadata
	case *dynamodb.ScanOutput:
		return out.ResultMetadata
	case *dynamodb.DescribeTableOutput:
		return out.ResultMetadata
	case *dynamodb.DescribeTimeToLiveOutput:
		return out.ResultMetadata
	}
	return smithy.Metadata{}
}
