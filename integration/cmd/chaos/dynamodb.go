package main

import (
	"context"
	"errors"
)

var errNoDynamo = errors.New("this engine has no stage yet")

func startDynamo(context.Context, casting) (stage, error) { return nil, errNoDynamo }

func openDynamo(context.Context, clientConfig) (locker, error) { return locker{}, errNoDynamo }
