package dynamolock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// Inspect implements driver.Driver.
func (e *engine) Inspect(ctx context.Context, key string) (driver.Info, error) {
	attrs, err := e.opts.Keys.encode(key)
	if err != nil {
		return driver.Info{}, err
	}
	var info driver.Info
	err = e.persist(ctx, func() error {
		i, err := e.get(ctx, attrs, true)
		if err != nil {
			return err
		}
		info = i.info(key)
		return nil
	})
	return info, err
}

// List implements driver.Driver. It queries the table if the prefix contains a whole
// partition key and the separator, and scans it otherwise. It leaves out items of other
// programs, and of keys that no key string names. A corrupt item of a lock becomes the
// error at the end.
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[driver.Info, error] {
	return func(yield func(driver.Info, error) bool) {
		next, err := e.pages(prefix)
		var bad []error
		for more := err == nil; more; {
			if e.tasks.Open().Err() != nil {
				err = driver.ErrClosed
				break
			}
			var items []attributes
			err = e.persist(ctx, func() (err error) {
				items, more, err = next(ctx)
				return err
			})
			if err != nil {
				break
			}
			for _, attrs := range items {
				key, ok := e.opts.Keys.decode(attrs)
				if !ok || !strings.HasPrefix(key, prefix) || hasNoToken(attrs) && !isTokenless(attrs) {
					continue
				}
				i, err := decode(e.opts.Table, attrs)
				switch {
				case err != nil:
					bad = append(bad, fmt.Errorf("%q: %w", key, err))
				case i.held() && !yield(i.info(key), nil):
					return
				}
			}
		}
		if err = errors.Join(append(bad, err)...); err != nil {
			yield(driver.Info{}, err)
		}
	}
}

// pages returns a function that reads the items of a List page by page, and
// reports whether there are more.
func (e *engine) pages(prefix string) (func(context.Context) ([]attributes, bool, error), error) {
	keys := e.opts.Keys
	partition, sort, split := strings.Cut(prefix, keys.Separator)
	if keys.Sort.Name != "" && split && partition != "" {
		return e.queryPages(partition, sort)
	}
	x := &expression{}
	filter := "attribute_exists(" + x.name(attrGUID) + ")"
	if prefix != "" {
		if keys.Partition.Type == types.ScalarAttributeTypeN {
			return nil, driver.Invalid("prefix", "keys of type N have no beginnings; only \"\" can be listed")
		}
		if partition = keys.beforeSeparator(prefix); partition != "" {
			begin, err := keys.Partition.encode("prefix", partition, maxPartition)
			if err != nil {
				return nil, err
			}
			filter = all(filter, "begins_with("+x.alias(aliasKey, keys.Partition.Name)+", "+x.value(begin)+")")
		}
	}
	in := &dynamodb.ScanInput{
		TableName:                 &e.opts.Table,
		ConsistentRead:            aws.Bool(true),
		FilterExpression:          &filter,
		ExpressionAttributeNames:  x.names,
		ExpressionAttributeValues: x.values,
	}
	return func(ctx context.Context) ([]attributes, bool, error) {
		out, err := call(ctx, e, "Scan", nil, in, e.api.Scan)
		if err != nil {
			return nil, true, err
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
		return out.Items, len(out.LastEvaluatedKey) > 0, nil
	}, nil
}

func (e *engine) queryPages(partition, sort string) (func(context.Context) ([]attributes, bool, error), error) {
	keys := e.opts.Keys
	x := &expression{}
	p, err := keys.Partition.encode("prefix", partition, maxPartition)
	if err != nil {
		return nil, err
	}
	cond := x.alias(aliasKey, keys.Partition.Name) + " = " + x.value(p)
	if sort != "" {
		if keys.Sort.Type == types.ScalarAttributeTypeN {
			return nil, driver.Invalid("prefix", "keys of type N have no beginnings; only %q can be listed", partition+keys.Separator)
		}
		s, err := keys.Sort.encode("prefix", sort, maxSort)
		if err != nil {
			return nil, err
		}
		cond = all(cond, "begins_with("+x.alias("#sort", keys.Sort.Name)+", "+x.value(s)+")")
	}
	in := &dynamodb.QueryInput{
		TableName:                 &e.opts.Table,
		ConsistentRead:            aws.Bool(true),
		KeyConditionExpression:    &cond,
		FilterExpression:          aws.String("attribute_exists(" + x.name(attrGUID) + ")"),
		ExpressionAttributeNames:  x.names,
		ExpressionAttributeValues: x.values,
	}
	return func(ctx context.Context) ([]attributes, bool, error) {
		out, err := call(ctx, e, "Query", nil, in, e.api.Query)
		if err != nil {
			return nil, true, err
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
		return out.Items, len(out.LastEvaluatedKey) > 0, nil
	}, nil
}

// Ask implements driver.Driver. The holder reads the wish in the answer to its next heartbeat.
// Other programs' holders do not know of it, and most of them remove it with theirs.
func (e *engine) Ask(ctx context.Context, info driver.Info) error {
	id, err := parseGrant(info.Grant)
	if err != nil {
		return err
	}
	key, err := e.opts.Keys.encode(info.Key)
	if err != nil {
		return err
	}
	return e.persist(ctx, func() error {
		_, old, err := e.update(ctx, key, asking(id))
		if err == nil && old != nil {
			return driver.ErrChanged
		}
		return err
	})
}

// Break implements driver.Driver. It frees a lock that never expires. It writes another
// guid to a lock with a lease, so that the holder cannot renew it: the holder learns of
// that at its next heartbeat, before the lease is over and somebody else can have the key.
func (e *engine) Break(ctx context.Context, info driver.Info) error {
	return e.end(ctx, info.Key, info.Grant, ctx.Value(breakNow{}) != nil)
}

// BreakNow is Break, but frees the key at once: the holder of a lock with a lease does not
// know until its next heartbeat, and somebody else may have the key by then. Only fencing
// covers that gap. Errors are those of Break.
func (c *Client) BreakNow(ctx context.Context, info holdfast.Info) error {
	if ctx != nil { // else Break refuses it
		ctx = context.WithValue(ctx, breakNow{}, true)
	}
	return c.Break(ctx, info)
}

// breakNow is the key of a context whose Break is a BreakNow.
type breakNow struct{}

// end breaks the grant of that name, and no other.
func (e *engine) end(ctx context.Context, name, grant string, now bool) error {
	id, err := parseGrant(grant)
	if err != nil {
		return err
	}
	key, err := e.opts.Keys.encode(name)
	if err != nil {
		return err
	}
	if id.shared {
		return e.breakShared(ctx, key, id, now)
	}
	mark := stranger()
	unanswered := false
	return e.persist(ctx, func() error {
		var old *item
		var err error
		if id.form == tokenless {
			x := &expression{}
			x.cond = id.present(x)
			_, old, err = e.remove(ctx, key, x)
		} else {
			_, old, err = e.update(ctx, key, e.breaking(id, mark, now))
		}
		switch {
		case maybeDone(err):
			unanswered = true
			return err
		case err != nil, old == nil:
			return err
		case old.belongs(mark), unanswered && id.form == tokenless && old.form == absent:
			return nil // an earlier try was carried out
		case !now && old.held() && old.sameGrant(id.token) && old.isBroken():
			return nil // somebody has broken it before
		}
		return driver.ErrChanged
	})
}
