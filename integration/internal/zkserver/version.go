package zkserver

import (
	"context"
	"fmt"
	"regexp"
)

// What follows the number, such as "-SNAPSHOT" or what it was built from, is left out.
var versionLine = regexp.MustCompile(`^Zookeeper version: (\d+\.\d+\.\d+)`)

// Version asks the server at addr for its ZooKeeper version, such as "3.9.5".
func Version(ctx context.Context, addr string) (string, error) {
	answer, err := FourLetter(ctx, addr, "srvr")
	if err != nil {
		return "", err
	}
	version := versionLine.FindStringSubmatch(answer)
	if version == nil {
		return "", fmt.Errorf("zookeeper %s: no version in %.100q", addr, answer)
	}
	return version[1], nil
}

// Before reports whether a version is older than major.minor.
func Before(version string, major, minor int) bool {
	var x, y int
	_, err := fmt.Sscanf(version, "%d.%d", &x, &y)
	return err == nil && (x < major || x == major && y < minor)
}
