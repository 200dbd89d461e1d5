module github.com/holdfast-go/holdfast/integration

go 1.25.0

require github.com/go-zookeeper/zk v1.0.4

replace github.com/holdfast-go/holdfast => ../
