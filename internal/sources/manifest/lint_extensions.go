// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/registry"
)

// injectCAFrom makes cert-manager write the CA into webhooks, APIServices and CustomResourceDefinitions.
const injectCAFrom = "cert-manager.io/inject-ca-from"

// lintExtensions returns what keeps extensions from being called as they are meant, as far as the files say it.
func (v *Inventory) lintExtensions(documents map[Place]*document, hooks *catalog.Catalog) []Problem {
	var problems []Problem
	objects := v.Of(extensionconfig.Kind)
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		x, d := objects[name].Extension, documents[objects[name].Place]
		d.name = name
		_, injected := d.node.Find("metadata", "annotations", injectCAFrom)
		_, follows := d.node.Find("metadata", "annotations", runtimev1.InjectCAFromSecretAnnotation)
		if injected {
			p := d.problemAt("metadata.annotations["+injectCAFrom+"]", fmt.Errorf("annotation %s has no effect here; "+
				"use %s: NAMESPACE/SECRET, so that Cluster API and Hookgate read ca.crt from a Secret", injectCAFrom,
				runtimev1.InjectCAFromSecretAnnotation))
			p.Warning = follows || len(x.ClientConfig.CABundle) > 0
			problems = append(problems, p)
		}
		if err := d.portOfService(documents); err != nil {
			problems = append(problems, d.problemAt(err.Field, err))
		}
		for _, h := range x.LastKnown {
			registered := h.Name + "." + name
			hub, known := hooks.Lookup(h.Hook)
			if label := registry.Label(registered); known && !hub.Hub().Mergeable && label != h.Name+"--"+name {
				p := d.problemAt("status.handlers", fmt.Errorf("status.handlers: handler %q is offered to Cluster API as %s, "+
					"because its name, with -- in place of the dot, would be ambiguous or longer than 63 characters: "+
					"use the offered name in a ClusterClass",
					registered, label))
				p.Warning = true
				problems = append(problems, p)
			}
		}
	}
	return problems
}

// portOfService returns an error if documents have the Service of an ExtensionConfig, and it lacks the port. A Service
// without a namespace may be meant for any.
func (d *document) portOfService(documents map[Place]*document) *field.Error {
	service, ok := d.node.Find("spec", "clientConfig", "service")
	if !ok {
		return nil
	}
	textOf := func(path ...string) string {
		n, _ := service.Find(path...)
		return n.Text()
	}
	port := cmp.Or(textOf("port"), strconv.Itoa(int(extensionconfig.DefaultPort)))
	lacks := ""
	for _, s := range documents {
		namespace, _ := s.node.Find("metadata", "namespace")
		kind, _ := s.node.Find("spec", "type")
		if s.apiVersion != "v1" || s.kind != "Service" || s.name != textOf("name") || kind.Text() == "ExternalName" ||
			namespace.Text() != "" && namespace.Text() != textOf("namespace") {
			continue
		}
		ports, _ := s.node.Find("spec", "ports")
		items, _ := ports.Items()
		for _, item := range items {
			if n, _ := item.Find("port"); n.Text() == port {
				return nil
			}
		}
		lacks = max(lacks, s.String())
	}
	if lacks == "" {
		return nil
	}
	return field.Invalid(field.NewPath("spec", "clientConfig", "service", "port"), field.OmitValueType{},
		fmt.Sprintf("the Service at %s has no port %s", lacks, port))
}
