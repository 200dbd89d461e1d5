package main

import (
	"context"
	_ "embed"
	"strconv"
)

//go:embed Curator.java
var curatorSource string

func curatorMutex() side { return curator("Curator's InterProcessMutex", "run", 5000, 0) }

func curatorSemaphore() side {
	return curator("Curator's InterProcessSemaphoreV2", "many", 3000, permits)
}

// curator has all its sessions in one process, as holdfast has. A limit of 0 means the mutex.
func curator(name, order string, warmup, limit int) side {
	return side{name, program("Curator.java", curatorSource, order, warmup,
		func(ctx context.Context, l *lifetime, path string) ([]string, error) {
			z, err := l.startZooKeeper(ctx)
			if err != nil {
				return nil, err
			}
			classpath, err := l.peer(ctx, "Curator")
			return java(classpath, path, z.addr(false), strconv.FormatInt(sessionTimeout.Milliseconds(), 10),
				strconv.Itoa(sessions), strconv.Itoa(limit), strconv.Itoa(contenders)), err
		})}
}
