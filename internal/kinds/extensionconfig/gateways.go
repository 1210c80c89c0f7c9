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

	"github.com/hookgate/hookgate/internal/network/via"
	"github.com/hookgate/hookgate/registry"
)

// GatewaysAnnotation of an ExtensionConfig that registers another gateway has the ids of the gateways behind which its
// handlers are: a JSON object, from a via.Path to the names of handlers in the discovery. The status has no room for
// it.
const GatewaysAnnotation = "runtime.hookgate.dev/gateways"

// Gateways returns the via.Paths in the annotation of config by handler, and an error for each entry that it leaves
// out.
func Gateways(config *runtimev1.ExtensionConfig) (map[string]string, field.ErrorList) {
	text, ok := config.Annotations[GatewaysAnnotation]
	if !ok {
		return nil, nil
	}
	path := field.NewPath("metadata", "annotations").Key(GatewaysAnnotation)
	var handlers map[string][]string
	if err := json.Unmarshal([]byte(text), &handlers); err != nil {
		return nil, field.ErrorList{field.Invalid(path, text, "must be a JSON object of gateways and lists of handlers")}
	}
	gateways := map[string]string{}
	var errs field.ErrorList
	for _, p := range slices.Sorted(maps.Keys(handlers)) {
		if err := via.Path(p).Check(); err != nil {
			errs = append(errs, field.Invalid(path, text, fmt.Sprintf("gateways %q: %v", p, err)))
			continue
		}
		for _, name := range handlers[p] {
			gateways[name] = p
		}
	}
	return gateways, errs
}

// FormatGateways returns the text that Gateways reads, always the same for the same handlers, or "" if none of them is
// behind another gateway.
func FormatGateways(handlers []registry.Handler) string {
	by := map[string][]string{}
	for i := range handlers {
		if p := handlers[i].Gateways; p != "" {
			by[p] = append(by[p], handlers[i].Name)
		}
	}
	if len(by) == 0 {
		return ""
	}
	for _, names := range by {
		slices.Sort(names)
	}
	text, err := json.Marshal(by) // in the order of paths
	if err != nil {
		panic(err) // strings can always be written
	}
	return string(text)
}
