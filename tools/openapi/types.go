// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"go/types"
	"strings"

	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/controller-tools/pkg/crd"
	crdmarkers "sigs.k8s.io/controller-tools/pkg/crd/markers"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"

	"github.com/hookgate/hookgate/catalog"
)

const (
	hooksPackage = "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	metaPackage  = "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// groups holds the packages whose types become components, and the prefixes of the names of these.
var groups = map[string]string{
	hooksPackage: "hooks.v1alpha1",
	"sigs.k8s.io/cluster-api/api/core/v1beta2":      "cluster.v1beta2",
	"sigs.k8s.io/cluster-api/api/deprecated/errors": "cluster.errors",
	"k8s.io/api/core/v1":                            "core.v1",
	metaPackage:                                     "meta.v1",
}

// readTypes returns the schemas of all requests and answers, and of the types they refer to, by the name of the
// component.
func readTypes(root string, hooks *catalog.Catalog) (map[string]schema, error) {
	roots, err := loader.LoadRootsWithConfig(&packages.Config{Dir: root}, hooksPackage)
	if err != nil {
		return nil, err
	}
	p, err := newParser()
	if err != nil {
		return nil, err
	}
	// Builtins is the value of the variable "builtin". Nothing refers to it, because the value of a variable may be
	// anything.
	wanted := []string{"Builtins"}
	for _, h := range hooks.Hooks() {
		wanted = append(wanted, string(h.Request.Descriptor().Name()), string(h.Response.Descriptor().Name()))
	}
	for _, name := range wanted {
		p.NeedSchemaFor(crd.TypeIdent{Package: roots[0], Name: name})
	}
	// The loader reads no more packages than it must, so that type errors are usual; what could not be read shows
	// below.
	if loader.PrintErrors(roots, packages.TypeError) {
		return nil, errors.New("read the types of Cluster API: see above")
	}
	c := &converter{parser: p, packages: map[string]*loader.Package{}, components: map[string]schema{}}
	for ident := range p.Schemata {
		c.packages[loader.NonVendorPath(ident.Package.PkgPath)] = ident.Package
	}
	for _, name := range wanted {
		if err := c.component(crd.TypeIdent{Package: roots[0], Name: name}); err != nil {
			return nil, err
		}
	}
	return c.components, nil
}

func newParser() (*crd.Parser, error) {
	registry := &markers.Registry{}
	for _, d := range crdmarkers.AllDefinitions {
		switch d.Name {
		case crdmarkers.SchemalessName, "kubebuilder:pruning:PreserveUnknownFields":
			// They keep recursive types out of CustomResourceDefinitions, where there is no reference. Here there is.
			continue
		}
		if err := d.Register(registry); err != nil {
			return nil, err
		}
	}
	p := &crd.Parser{Collector: &markers.Collector{Registry: registry}, Checker: &loader.TypeChecker{}}
	crd.AddKnownTypes(p)
	known := p.PackageOverrides[metaPackage]
	p.PackageOverrides[metaPackage] = func(p *crd.Parser, pkg *loader.Package) {
		known(p, pkg)
		// A CustomResourceDefinition omits metadata, because the API server knows it; readers of this document do not.
		delete(p.Schemata, crd.TypeIdent{Name: "ObjectMeta", Package: pkg})
	}
	return p, nil
}

// componentName returns the name of a type's component.
func componentName(ident crd.TypeIdent) (string, error) {
	path := loader.NonVendorPath(ident.Package.PkgPath)
	group, ok := groups[path]
	if !ok {
		return "", fmt.Errorf("type %s: no component name begins for package %s", ident.Name, path)
	}
	return group + "." + ident.Name, nil
}

// nullable returns the members of a struct that encoding/json writes as null when they are empty: lists, maps,
// pointers and times without omitempty.
func nullable(info *markers.TypeInfo, pkg *loader.Package) map[string]bool {
	members := map[string]bool{}
	for _, field := range info.Fields {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero") {
			continue
		}
		t := pkg.TypesInfo.TypeOf(field.RawField.Type)
		if t == nil {
			continue
		}
		switch t.Underlying().(type) {
		case *types.Slice, *types.Map, *types.Pointer:
			members[name] = true
		}
		if named, ok := t.(*types.Named); ok && named.Obj().Pkg() != nil &&
			named.Obj().Pkg().Path() == metaPackage && named.Obj().Name() == "Time" {
			members[name] = true
		}
	}
	return members
}
