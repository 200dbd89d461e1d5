package dynamolock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
)

// A transaction with the check commits while the lock is held, and never after it was lost.
func TestConditionCheck(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, lock *holdfast.Lock, other *client){
		"released": func(t *testing.T, lock *holdfast.Lock, _ *client) { mustRelease(t, lock) },
		"broken":   func(t *testing.T, _ *holdfast.Lock, other *client) { other.breakIt(t, "k", false) },
		"reclaimed": func(t *testing.T, _ *holdfast.Lock, other *client) {
			other.hold(t, "k", holdfast.WithOwner("worker"), holdfast.WithReclaim())
		},
	} {
		t.Run(name, func(t *testing.T) {
			inEach(t, allModes, func(t *testing.T, h *harness) {
				a, b := h.pair(t)
				lock := a.hold(t, "k", holdfast.WithOwner("worker"))
				check := a.check(t, lock)
				write := func() error { return h.commit(t, a, check) }
				if err := write(); err != nil {
					t.Errorf("held: %v", err)
				}
				time.Sleep(lease / 2) // heartbeats do not invalidate it
				if err := write(); err != nil {
					t.Errorf("held, and renewed: %v", err)
				}
				lose(t, lock, b)
				var cancelled *types.TransactionCanceledException
				if err := write(); !errors.As(err, &cancelled) || aws.ToString(cancelled.CancellationReasons[0].Code) != "ConditionalCheckFailed" {
					t.Errorf("%s: %v", name, err)
				}
				<-lock.Done()
				if _, err := a.ConditionCheck(lock); !errors.Is(err, lock.Err()) {
					t.Errorf("%v, want %v", err, lock.Err())
				}
			})
		})
	}
}

// A check for a transaction covers one grant. In FailClosed all grants have the token 0,
// and the same client may have acquired the key again while its earlier lock does not yet
// know that it was broken.
func TestConditionCheckOfABrokenLock(t *testing.T) {
	inEach(t, closedModes, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		var broken, next *holdfast.Lock
		for i := 0; broken == nil || broken.Err() != nil; i++ { // a heartbeat that comes in between tells it
			key := fmt.Sprint("k", i)
			broken = a.hold(t, key, holdfast.WithOwner("o"))
			b.breakIt(t, key, false)
			next = a.hold(t, key, holdfast.WithOwner("o"))
		}
		check := a.check(t, broken)
		if err := h.commit(t, a, check); err == nil {
			t.Errorf("a transaction of a broken lock is committed")
		}
		check = a.check(t, next)
		if err := h.commit(t, a, check); err != nil {
			t.Errorf("a transaction of the lock that is held: %v", err)
		}
		for name, lock := range map[string]*holdfast.Lock{"nil": nil, "another client's": next} {
			if _, err := b.ConditionCheck(lock); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		<-broken.Done() // it learns of that before Close would
	})
}

// Whoever gets a check may change it: it shares nothing with the client, or with another check.
func TestConditionCheckIsTheCallersOwn(t *testing.T) {
	inEach(t, allModes, func(t *testing.T, h *harness) {
		a, _ := h.pair(t)
		lock := a.hold(t, "k")
		check := a.check(t, lock)
		*check.TableName = "another"
		check.Key["id"].(*types.AttributeValueMemberS).Value = "another"
		for name, value := range check.ExpressionAttributeValues {
			if value, ok := value.(*types.AttributeValueMemberB); ok {
				clear(value.Value)
			}
			check.ExpressionAttributeValues[name] = s("another")
		}
		clear(check.ExpressionAttributeNames)
		if err := h.commit(t, a, a.check(t, lock)); err != nil {
			t.Errorf("the next check: %v", err)
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Errorf("Release: %v", err)
		}
	})
}

func (c *client) check(t testing.TB, lock *holdfast.Lock) *types.ConditionCheck {
	t.Helper()
	check, err := c.ConditionCheck(lock)
	if err != nil {
		t.Fatal(err)
	}
	return check
}

// commit runs a user's transaction with a check.
func (h *harness) commit(t *testing.T, c *client, check *types.ConditionCheck) error {
	t.Helper()
	_, err := c.conn.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{
			{ConditionCheck: check},
			{Put: &types.Put{TableName: aws.String(tableName), Item: item{"id": s("data"), "v": s("x")}}},
		},
	})
	return err
}
