# Each target is one line that a person could type.
.PHONY: run test bench lint build

run:
	go run ./cmd/stroppy run bank

test:
	./scripts/test.sh

bench:
	go run ./tools/bench

lint:
	gofmt -l cmd internal tools && go vet ./... && go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

build:
	CGO_ENABLED=0 go build -trimpath -o stroppy ./cmd/stroppy
