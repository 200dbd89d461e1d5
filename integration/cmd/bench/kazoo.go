package main

import (
	"context"
	_ "embed"
	"strconv"
)

//go:embed kazoo_lock.py
var kazooSource string

func kazooLock() side {
	return side{"kazoo's Lock", program("kazoo_lock.py", kazooSource, "run", 0,
		func(ctx context.Context, l *lifetime, path string) ([]string, error) {
			z, err := l.startZooKeeper(ctx)
			if err != nil {
				return nil, err
			}
			python, err := l.peer(ctx, "kazoo")
			return []string{python, path, z.addr(false), strconv.Itoa(int(sessionTimeout.Seconds()))}, err
		})}
}
