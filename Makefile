# Each target is one line that a person could type.
.PHONY: run test quick test-kubernetes versions seeds statements bench lint build dist docs

run:
	CGO_ENABLED=0 GOGC=400 go run -tags embedded ./cmd/stroppy run bank

test:
	./scripts/test.sh

quick:
	./scripts/test.sh quick

test-kubernetes:
	./scripts/test.sh kubernetes

versions:
	./scripts/test.sh versions

seeds:
	./scripts/test.sh seeds

statements:
	go run ./tools/statements -runs 10000 -altered 3000

bench:
	go -C tools/bench run .

lint:
	./scripts/test.sh lint

build:
	CGO_ENABLED=0 go build -trimpath -pgo=cmd/stroppy/release.pgo -o stroppy ./cmd/stroppy

dist:
	go -C tools/dist run .

docs:
	./tools/site/build.sh
