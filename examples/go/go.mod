module github.com/hookgate/hookgate/examples/go

go 1.26.0

require (
	github.com/hookgate/hookgate/gen/go v0.0.0-00010101000000-000000000000
	github.com/hookgate/hookgate/sdk v0.0.0-00010101000000-000000000000
)

require (
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.44.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261110000943-09e21b237f2c // indirect
	google.golang.org/grpc v1.85.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

// The packages lie in this repository. An extension with a repository of its own leaves these lines out.
replace (
	github.com/hookgate/hookgate/gen/go => ../../gen/go
	github.com/hookgate/hookgate/sdk => ../../sdk
)
