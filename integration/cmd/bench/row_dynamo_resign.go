package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// resigning measures how long after a call of Resign the candidate of another client leads: at most until its next poll. The
// control is the same call of Resign, a poll period and one more call.
func resigning(ctx context.Context, e *dynamoEnv, emit func(report.Row)) error {
	const poll, trials = 300 * time.Millisecond, 5
	var clients []*holdfast.Client
	for range 2 {
		c, err := e.connect(ctx, dynamolock.Options{Poll: poll})
		if err != nil {
			return err
		}
		defer closeClient(c.Client)
		clients = append(clients, c.Client)
	}
	key, other := e.name("resigned"), e.name("control")
	resign, err := electedOf(clients[0])(ctx, key)
	if err != nil {
		return err
	}
	var took, control []float64
	for i := range trials * e.times(6, 1) {
		elected := make(chan error, 1)
		var at time.Time
		var next func() error
		go func() {
			var err error
			next, err = electedOf(clients[(i+1)%2])(ctx, key)
			at = time.Now()
			elected <- err
		}()
		// By then it looks at any moment of its period.
		if err := pause(ctx, 2*poll+time.Duration(i%trials)*poll/trials); err != nil {
			return err
		}
		began := time.Now()
		err := resign()
		if err := errors.Join(err, pause(ctx, poll)); err != nil {
			return err
		}
		if _, err := clients[i%2].Inspect(ctx, other); err != nil {
			return err
		}
		control = append(control, float64(time.Since(began)))
		if err := <-elected; err != nil {
			return err
		}
		took, resign = append(took, float64(at.Sub(began))), next
	}
	of := func(sample []float64) time.Duration {
		return time.Duration(report.MedianInterval(sample).Median).Round(100 * time.Microsecond)
	}
	emit(report.Judge("DynamoDB, from Resign until the next leads, at most",
		fmt.Sprintf("holdfast %v, poll + two calls %v", of(took), of(control)),
		fmt.Sprintf("the worst of %d resignations, %d times", trials, len(took)/trials),
		report.AtMost(1+noise), worstOf(took, control, trials)))
	return nil
}
