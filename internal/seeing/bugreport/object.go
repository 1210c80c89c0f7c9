// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package bugreport

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ownAnnotations are the parts of the names of annotations that are kept: those of Cluster API and of Hookgate.
var ownAnnotations = []string{"cluster.x-k8s.io/", "hookgate.dev/"}

// AddObjects adds objects of Cluster API and Hookgate without the values of settings, which may be credentials, without
// certificates, and without annotations of others, which may repeat all of that.
func (a *Archive) AddObjects(name string, objects []unstructured.Unstructured) {
	kept := make([]map[string]any, 0, len(objects))
	for i := range objects {
		object := objects[i].DeepCopy().Object
		spec, _, _ := unstructured.NestedFieldNoCopy(object, "spec")
		a.withoutSettings(spec)
		steps, _, _ := unstructured.NestedFieldNoCopy(object, "spec", "steps") // of a HandlerChain
		list, _ := steps.([]any)
		for _, step := range list {
			a.withoutSettings(step)
		}
		if bundle, ok, _ := unstructured.NestedString(object, "spec", "clientConfig", "caBundle"); ok {
			_ = unstructured.SetNestedField(object, fmt.Sprintf("%d bytes", len(bundle)), "spec", "clientConfig", "caBundle")
		}
		unstructured.RemoveNestedField(object, "metadata", "managedFields")
		if annotations, ok, _ := unstructured.NestedMap(object, "metadata", "annotations"); ok {
			maps.DeleteFunc(annotations, func(key string, _ any) bool {
				return !slices.ContainsFunc(ownAnnotations, func(part string) bool { return strings.Contains(key, part) })
			})
			_ = unstructured.SetNestedMap(object, annotations, "metadata", "annotations")
		}
		kept = append(kept, object)
	}
	a.AddJSON(name, kept)
}

// withoutSettings removes the values of the settings of an object, in place.
func (a *Archive) withoutSettings(of any) {
	object, _ := of.(map[string]any)
	settings, _ := object["settings"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		a.Secret(fmt.Sprint(settings[key]))
		settings[key] = Removed
	}
}

// container is what is told of a container: with its flags, which are the configuration of the gateway.
type container struct {
	Name    string            `json:"name"`
	Image   string            `json:"image"`
	Command []string          `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Limits  map[string]string `json:"limits,omitempty"`
}

// AddPod adds the configuration and the state of a Pod.
func (a *Archive) AddPod(name string, pod *corev1.Pod) {
	var containers []container
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		told := container{
			Name: c.Name, Image: c.Image, Command: a.withoutTokens(c.Command), Args: a.withoutTokens(c.Args),
			Env: map[string]string{}, Limits: map[string]string{},
		}
		for _, e := range c.Env {
			told.Env[e.Name] = e.Value
			if !strings.HasPrefix(e.Name, "GO") && !strings.HasPrefix(e.Name, "HOOKGATE_") || isToken(e.Name) {
				a.Secret(e.Value)
				told.Env[e.Name] = Removed
			}
		}
		for resource, limit := range c.Resources.Limits {
			told.Limits[string(resource)] = limit.String()
		}
		containers = append(containers, told)
	}
	a.AddJSON(name, map[string]any{
		"name": pod.Name, "namespace": pod.Namespace, "created": pod.CreationTimestamp, "containers": containers,
		"status": pod.Status,
	})
}

// withoutTokens returns arguments without the values of flags that hold a token.
func (a *Archive) withoutTokens(args []string) []string {
	kept := slices.Clone(args)
	for i, arg := range kept {
		flag, value, ok := strings.Cut(arg, "=")
		switch {
		case !strings.HasPrefix(arg, "--") || !isToken(flag):
		case ok:
			a.Secret(value)
			kept[i] = flag + "=" + Removed
		case i+1 < len(kept):
			a.Secret(kept[i+1])
			kept[i+1] = Removed
		}
	}
	return kept
}

// isToken reports whether a flag or a variable holds a secret, and not the name of the file with it.
func isToken(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	return !strings.HasSuffix(name, "-file") &&
		slices.ContainsFunc([]string{"token", "password", "secret", "header"}, func(part string) bool {
			return strings.Contains(name, part)
		})
}
