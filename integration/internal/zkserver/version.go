package zkserver

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Version asks the server at addr for its ZooKeeper version, such as "3.9.5".
func Version(ctx context.Context, addr string) (string, error) {
	answer, err := FourLetter(ctx, addr, "srvr")
	if err != nil {
		return "", err
	}
	version, err := parseVersion(answer)
	if err != nil {
		return "", fmt.Errorf("zookeeper %s: %w", addr, err)
	}
	return version, nil
}

// parseVersion reads the first line of the answer to "srvr". What follows the number, such as "-SNAPSHOT" or what it was built
// from, is left out.
func parseVersion(answer string) (string, error) {
	first, _, _ := strings.Cut(answer, "\n")
	rest, ok := strings.CutPrefix(first, "Zookeeper version: ")
	version := rest
	if end := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); end >= 0 {
		version = rest[:end]
	}
	if parts := strings.Split(version, "."); !ok || len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return "", fmt.Errorf("no version in %.100q", first)
	}
	return version, nil
}

// Before reports whether a version is older than major.minor.
func Before(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	x, _ := strconv.Atoi(parts[0])
	y, _ := strconv.Atoi(parts[1])
	return x < major || x == major && y < minor
}
