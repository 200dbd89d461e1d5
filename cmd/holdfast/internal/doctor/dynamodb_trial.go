package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/dynamolock"
)

// latency measures writes that change nothing, each by itself: no more than one
// has to come through per heartbeat, but in time.
func (t *table) latency(ctx context.Context) ([]Finding, error) {
	if t.denied["UpdateItem"] {
		return nil, errUnseen
	}
	var writes latencies
	for range writeProbes {
		began := time.Now()
		if err := t.vainUpdate(ctx, once); err != nil {
			return nil, fmt.Errorf("UpdateItem: %w", err)
		}
		writes = append(writes, time.Since(began))
	}
	o := t.client.Options()
	return only(judgeCalls(writes, o.Heartbeat, o.Timeout))
}

func judgeCalls(writes latencies, heartbeat, limit time.Duration) Finding {
	told := fmt.Sprintf("writes took %v; a lock is renewed once per %v, and a request is given up after %v", writes, figure(heartbeat), figure(limit))
	const cure = "use the region that is nearest, see to throttling (CloudWatch: ThrottledRequests), or give a longer --lease"
	switch {
	case writes.worst() >= limit:
		return problem(cure, "%s", told)
	case writes.worst() >= limit/2:
		return warning(cure, "%s", told)
	}
	return ok("%s", told)
}

// unusable reports whether a lock of the check's own could not be taken, or its
// item not be removed.
func (t *table) unusable() bool {
	return t.denied["GetItem"] || t.denied["UpdateItem"] || t.denied["DeleteItem"]
}

// trial takes a lock of its own, as a program would. Its item is deleted at the
// end.
func (t *table) trial(ctx context.Context) ([]Finding, error) {
	if t.unusable() {
		return nil, errUnseen
	}
	t.used = true
	f, err := tryLock(ctx, t.client.Client, t.key.key, t.Timeout)
	t.present = err == nil && t.Options.Mode != dynamolock.FailClosed // which keeps no item
	if err != nil {
		return nil, err
	}
	return only(f)
}

// reason makes a write whose condition does not hold, on the item that the trial
// has left, and looks whether the item is told. Without it each such write costs
// a read more.
func (t *table) reason(ctx context.Context) ([]Finding, error) {
	if !t.present {
		return only(ok("not looked at, for want of an item"))
	}
	_, err := t.ddb.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.Options.Table, Key: t.key.item,
		UpdateExpression:                    aws.String("REMOVE #g"),
		ConditionExpression:                 aws.String("attribute_not_exists(#p)"),
		ExpressionAttributeNames:            map[string]string{"#p": t.partition(), "#g": "guid"},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	var failed *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return only(problem("use DynamoDB itself, or another emulator", "a write whose condition does not hold succeeds"))
	case !errors.As(err, &failed):
		return nil, fmt.Errorf("UpdateItem: %w", err)
	case len(failed.Item) == 0:
		return only(ok("a write whose condition does not hold does not tell why, as DynamoDB's would: that costs a read more"))
	}
	return only(ok("a write whose condition does not hold tells why"))
}

// farApart is a difference of clocks from which on signatures are refused.
const farApart = 5 * time.Minute

// clock compares the wall clocks: requests are signed with the time.
func (t *table) clock(context.Context) ([]Finding, error) {
	_, clock := t.wire.seen()
	if !clock.known {
		return only(ok("the answers do not tell the time"))
	}
	return only(judgeClock(clock))
}

func judgeClock(c clock) Finding {
	if c.ahead.Abs() >= farApart {
		return problem("set the clock of this machine (NTP)",
			"the clock of DynamoDB differs from this machine's by %v: signatures are refused from %v on", figure(c.ahead.Abs()), farApart)
	}
	return c.skew("DynamoDB")
}
