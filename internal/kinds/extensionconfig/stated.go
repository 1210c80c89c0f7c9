// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// StatedVersionsAnnotation of an ExtensionConfig has the versions of Cluster API objects that its handlers
// understand, as their extension has stated them in its discovery: a JSON object, from the handler's name in its
// discovery to v1beta1 or v1beta2. The status has no room for it.
const StatedVersionsAnnotation = "runtime.hookgate.dev/cluster-api-versions"

// StatedVersions returns the versions in the annotation of config by handler, and an error for each entry that it
// leaves out.
func StatedVersions(config *runtimev1.ExtensionConfig) (map[string]string, field.ErrorList) {
	text, ok := config.Annotations[StatedVersionsAnnotation]
	if !ok {
		return nil, nil
	}
	path := field.NewPath("metadata", "annotations").Key(StatedVersionsAnnotation)
	var stated map[string]string
	if err := json.Unmarshal([]byte(text), &stated); err != nil {
		return nil, field.ErrorList{field.Invalid(path, text,
			`must be a JSON object of handlers and versions, such as {"before-create":"v1beta1"}`)}
	}
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(stated)) {
		if err := hook.CheckClusterAPIVersion(stated[name]); err != nil {
			errs = append(errs, field.Invalid(path, text, fmt.Sprintf("handler %q: %v", name, err)))
			delete(stated, name)
		}
	}
	return stated, errs
}

// FormatStatedVersions returns the text that StatedVersions reads, always the same for the same handlers, or "" if none
// of them states a version.
func FormatStatedVersions(handlers []registry.Handler) string {
	stated := map[string]string{}
	for i := range handlers {
		if v := handlers[i].ClusterAPIVersion; v != "" {
			stated[handlers[i].Name] = v
		}
	}
	if len(stated) == 0 {
		return ""
	}
	text, err := json.Marshal(stated) // in the order of names
	if err != nil {
		panic(err) // strings can always be written
	}
	return string(text)
}
