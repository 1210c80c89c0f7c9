// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/hookgate/hookgate/hook"
)

// service is a gRPC service that has a method with a handler, or a discovery.
type service struct {
	descriptor protoreflect.ServiceDescriptor
	methods    []*method
}

// method is the method of a hook.
type method struct {
	hook       string // its name
	apiVersion string
	fullMethod string // as gRPC has it: /service/method
	request    protoreflect.MessageType
	response   protoreflect.MessageType
	discovery  bool       // whether it lists the handlers of its package
	handlers   []*handler // those of the hook; of a discovery, at most one
}

// method returns the method that takes the request. It adds the service to the extension, with the discovery of the
// package.
func (x *Extension) method(request protoreflect.MessageType) (*method, error) {
	name := request.Descriptor().FullName()
	apiVersion, err := x.apiVersion(name.Parent())
	if err != nil {
		return nil, err
	}
	var found *method
	protoregistry.GlobalFiles.RangeFilesByPackage(name.Parent(), func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			s := file.Services().Get(i)
			for j := range s.Methods().Len() {
				d := s.Methods().Get(j)
				if d.Input().FullName() != name && !isDiscovery(d) {
					continue
				}
				var m *method
				if m, err = x.add(d, apiVersion); err != nil {
					return false
				}
				if d.Input().FullName() == name {
					found = m
				}
			}
		}
		return true
	})
	if err == nil && found == nil {
		err = fmt.Errorf("no method takes %s: want the request of a hook, such as *BeforeClusterUpgradeRequest", name)
	}
	return found, err
}

// apiVersion returns the group and version of the hooks of a proto package.
func (x *Extension) apiVersion(pkg protoreflect.FullName) (string, error) {
	group := x.Groups[string(pkg)]
	switch pkg.Parent() {
	case "hookgate.hooks":
		group = hook.Group
	case "hookgate.infrastructure":
		group = hook.InfrastructureGroup
	}
	if group == "" {
		return "", fmt.Errorf("the group of hooks of the proto package %s is not known: name it in Extension.Groups", pkg)
	}
	return group + "/" + string(pkg.Name()), nil
}

// isDiscovery reports whether the answer of a method lists handlers.
func isDiscovery(d protoreflect.MethodDescriptor) bool {
	f := d.Output().Fields().ByName("handlers")
	return f != nil && f.IsList() && f.Message() != nil && f.Message().Name() == "ExtensionHandler"
}

// add returns the method of the extension for d.
func (x *Extension) add(d protoreflect.MethodDescriptor, apiVersion string) (*method, error) {
	parent := d.Parent().(protoreflect.ServiceDescriptor) //nolint:forcetypeassert // the parent of a method is one
	if x.services == nil {
		x.services = map[string]*service{}
	}
	s := x.services[string(parent.FullName())]
	if s == nil {
		s = &service{descriptor: parent}
		x.services[string(parent.FullName())] = s
	}
	for _, m := range s.methods {
		if m.hook == string(d.Name()) {
			return m, nil
		}
	}
	request, errRequest := protoregistry.GlobalTypes.FindMessageByName(d.Input().FullName())
	response, errResponse := protoregistry.GlobalTypes.FindMessageByName(d.Output().FullName())
	if err := errors.Join(errRequest, errResponse); err != nil {
		return nil, fmt.Errorf("messages of %s: %w", d.FullName(), err)
	}
	m := &method{
		hook: string(d.Name()), apiVersion: apiVersion, discovery: isDiscovery(d),
		fullMethod: fmt.Sprintf("/%s/%s", parent.FullName(), d.Name()), request: request, response: response,
	}
	s.methods = append(s.methods, m)
	return m, nil
}

// The values of the enum of a status, which are the same in every version of the contract.
const (
	success = protoreflect.EnumNumber(1)
	failure = protoreflect.EnumNumber(2)
)

// statusField returns the member of a response with the status, or nil if it has none.
func statusField(d protoreflect.MessageDescriptor) protoreflect.FieldDescriptor {
	f := d.Fields().ByName("status")
	if f == nil || f.Enum() == nil || f.Enum().Values().ByNumber(failure) == nil {
		return nil
	}
	return f
}

// shallow returns a copy of a message whose fields can be set: a handler may return the same message in several calls.
func shallow(m protoreflect.Message) protoreflect.Message {
	out := m.New()
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		out.Set(f, v)
		return true
	})
	out.SetUnknown(m.GetUnknown())
	return out
}
