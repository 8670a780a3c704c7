package kubernetes

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SecretKind is the kind of objects that hold passwords.
var SecretKind = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}

// NewSecret returns a Secret with these values.
func NewSecret(name string, values map[string]string) *Object {
	data := map[string]any{}
	for key, value := range values {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	return NewObject("v1", SecretKind.Kind, name, map[string]any{"type": "Opaque", "data": data})
}

// NewPassword returns a random password of letters and digits.
func NewPassword() string { return rand.Text() }

// Secret returns the values of a Secret of the namespace.
func (a *API) Secret(ctx context.Context, name string) (map[string]string, error) {
	o, err := a.Get(ctx, SecretKind, name)
	if err != nil {
		return nil, err
	}
	data, _, _ := unstructured.NestedStringMap(o.Object, "data")
	values := make(map[string]string, len(data))
	for key, text := range data {
		value, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("the secret %s has a %s that cannot be read", name, key)
		}
		values[key] = string(value)
	}
	return values, nil
}

// Condition reports whether a condition of an object's status is true, and returns its message. It returns false and
// "" if the object has no such condition.
func Condition(o *Object, name string) (holds bool, message string) {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, one := range conditions {
		if c, ok := one.(map[string]any); ok && c["type"] == name {
			message, _ = c["message"].(string)
			return c["status"] == "True", message
		}
	}
	return false, ""
}

// Text returns a text in an object, or "".
func Text(object map[string]any, path ...string) string {
	text, _, _ := unstructured.NestedString(object, path...)
	return text
}

// Flag reports whether a boolean in an object is set.
func Flag(object map[string]any, path ...string) bool {
	set, _, _ := unstructured.NestedBool(object, path...)
	return set
}
