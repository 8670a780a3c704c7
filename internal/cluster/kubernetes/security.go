package kubernetes

// RestrictedPod is the security context of a pod that the restricted level of Kubernetes' Pod
// Security Standards admits.
func RestrictedPod() map[string]any {
	const nobody = int64(65532) // the user that images without a shell usually have
	return map[string]any{
		"runAsNonRoot": true, "runAsUser": nobody, "runAsGroup": nobody, "fsGroup": nobody,
		"seccompProfile": map[string]any{"type": "RuntimeDefault"},
	}
}

// RestrictedContainer is the security context of a container of such a pod.
func RestrictedContainer() map[string]any {
	return map[string]any{
		"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
		"capabilities": map[string]any{"drop": []any{"ALL"}},
	}
}
