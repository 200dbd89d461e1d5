// Package locktest tests implementations of [holdfast.Backend].
package locktest
