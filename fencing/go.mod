module github.com/holdfast-go/holdfast/fencing

go 1.25.0

replace github.com/holdfast-go/holdfast => ..

require github.com/holdfast-go/holdfast v0.0.0-00010101000000-000000000000

require github.com/cenkalti/backoff/v4 v4.3.0 // indirect
