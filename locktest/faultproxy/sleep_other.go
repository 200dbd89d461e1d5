//go:build !linux

package faultproxy

import "time"

var sleep = time.Sleep
