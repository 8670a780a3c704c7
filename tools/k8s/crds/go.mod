module stroppy/tools/k8s/crds

go 1.26.0

require (
	github.com/chaos-mesh/chaos-mesh v0.9.1-0.20260902003049-47411975a8cb
	github.com/cockroachdb/helm-charts v0.0.0-20260828131910-3f65257a73c7
	github.com/mongodb/mongodb-kubernetes-operator v0.9.0
	github.com/percona/percona-server-mongodb-operator v1.20.1
)
