package dynamolock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

// A transaction with the check commits while the lock is held, and never after it was
// lost, however it was lost.
func TestConditionCheck(t *testing.T) {
	for _, mode := range []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosed, dynamolock.FailClosedFenced} {
		for name, lose := range map[string]func(t *testing.T, lock *holdfast.Lock, other *client){
			"released": func(t *testing.T, lock *holdfast.Lock, _ *client) {
				if err := lock.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
			"broken": func(t *testing.T, lock *holdfast.Lock, other *client) {
				other.breakIt(t, lock.Key(), false)
			},
			"reclaimed": func(t *testing.T, _ *holdfast.Lock, other *client) {
				other.hold(t, "k", holdfast.WithOwner("worker"), holdfast.WithReclaim())
			},
		} {
			t.Run(mode.String()+"/"+name, func(t *testing.T) {
				bubble(t, dynamolock.Options{Mode: mode}, func(t *testing.T, h *harness) {
					a, b := h.pair(t)
					lock := a.hold(t, "k", holdfast.WithOwner("worker"))
					check, err := a.ConditionCheck(lock)
					if err != nil {
						t.Fatal(err)
					}
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
}

func TestConditionCheckOfNoLock(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		for name, lock := range map[string]*holdfast.Lock{"nil": nil, "another client's": b.hold(t, "k")} {
			if _, err := a.ConditionCheck(lock); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// A check for a transaction covers one grant. In FailClosed all grants have the token 0,
// and the same client may have acquired the key again while its earlier lock does not yet
// know that it was broken.
func TestConditionCheckOfABrokenLock(t *testing.T) {
	for _, mode := range closedModes {
		bubble(t, dynamolock.Options{Mode: mode}, func(t *testing.T, h *harness) {
			a, b := h.pair(t)
			broken := a.hold(t, "k", holdfast.WithOwner("o"))
			b.breakIt(t, "k", false)
			next := a.hold(t, "k", holdfast.WithOwner("o"))
			if err := broken.Err(); err != nil {
				t.Fatalf("%v: it knows already: %v", mode, err)
			}
			check, err := a.ConditionCheck(broken)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.commit(t, a, check); err == nil {
				t.Errorf("%v: a transaction of a broken lock is committed", mode)
			}
			if check, err = a.ConditionCheck(next); err != nil {
				t.Fatal(err)
			}
			if err := h.commit(t, a, check); err != nil {
				t.Errorf("%v: a transaction of the lock that is held: %v", mode, err)
			}
			if _, err := b.ConditionCheck(next); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("%v: of another client's lock: %v", mode, err)
			}
			<-broken.Done() // it learns of that before Close would
		})
	}
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
