package kubernetes

// RestrictedPod returns the security context of a pod for the restricted level of Kubernetes' Pod Security Standards.
func RestrictedPod() map[string]any {
	const nobody = int64(65532) // the usual user of images without a shell
	return map[string]any{
		"runAsNonRoot": true, "runAsUser": nobody, "runAsGroup": nobody, "fsGroup": nobody,
		"seccompProfile": map[string]any{"type": "RuntimeDefault"},
	}
}

// RestrictedContainer returns the security context of a container in such a pod.
func RestrictedContainer() map[string]any {
	return map[string]any{
		"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
		"capabilities": map[string]any{"drop": []any{"ALL"}},
	}
}
